import { persistentFetch } from './fetch';
import { session } from './session';
import type { KubeObject } from './types';
import { text } from '../text/en';

/** proxy is the API's path on the console's origin. */
export const proxy = '/console/proxy';

/** ApiError is a response from the API that reports a failure. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
    /** details identifies the affected object. Its kind is a resource, such as pods. */
    readonly details: { kind?: string; name?: string } = {},
  ) {
    super(message);
  }
}

/** ConnectionError means that a request received no response. */
export class ConnectionError extends Error {}

export interface RequestOptions {
  accept?: string;
  contentType?: string;
  signal?: AbortSignal;
  /**
   * repeatable means that a POST request changes nothing, or that repeating the request has no
   * additional effect.
   */
  repeatable?: boolean;
}

/**
 * send sends a request to the API. It throws an ApiError if the response reports a failure, and a
 * ConnectionError if there is no response.
 */
export async function send(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? 'application/json', 'X-CSRF-Token': session.csrf };
  if (body !== undefined) {
    headers['Content-Type'] = options.contentType ?? 'application/json';
  }
  const content = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  const once = method === 'POST' && !options.repeatable;
  const request = once ? fetch : persistentFetch;
  let response: Response;
  try {
    response = await request(proxy + path, { method, headers, body: content, signal: options.signal, redirect: 'error' });
  } catch (cause) {
    throw cause instanceof TypeError ? new ConnectionError(once ? text.failure.unknownOutcome : text.failure.connection, { cause }) : cause;
  }
  if (response.status === 401) {
    session.expire();
  }
  if (!response.ok) {
    throw await failure(response);
  }
  return response;
}

/**
 * failure converts an unsuccessful response to an error. The response can contain a Status object
 * or any other text.
 */
async function failure(response: Response): Promise<ApiError> {
  const content = await response.text();
  try {
    const status = JSON.parse(content) as { kind?: string; reason?: string; message?: string; details?: ApiError['details'] };
    if (status.kind === 'Status') {
      return new ApiError(response.status, status.reason ?? '', status.message ?? response.statusText, status.details);
    }
  } catch {
    // the response is not JSON
  }
  return new ApiError(response.status, '', content.trim() || response.statusText || `HTTP status ${response.status}`);
}

export async function get<T>(path: string, options?: RequestOptions): Promise<T> {
  return (await send('GET', path, undefined, options)).json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
  return (await send('POST', path, body, options)).json() as Promise<T>;
}

/**
 * create creates a named object in a collection. If the network fails, create retries. If an object
 * of this name and kind then exists, the first request has created it.
 */
export async function create<T>(collection: string, name: string, body: unknown, created = collection): Promise<T> {
  try {
    return await post<T>(collection, body);
  } catch (error) {
    if (!(error instanceof ConnectionError)) {
      throw error;
    }
  }
  try {
    return await post<T>(collection, body, { repeatable: true });
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'AlreadyExists') {
      return get<T>(`${created}/${encodeURIComponent(name)}`);
    }
    throw error;
  }
}

/** put stores an object, unless it has changed since it was read. */
export async function put<T>(path: string, body: unknown): Promise<T> {
  const response = await send('PUT', path, body).catch((error: unknown) => {
    throw isConflictOf(path, error) ? conflict() : error;
  });
  return response.json() as Promise<T>;
}

/**
 * isConflictOf reports whether an error means that the object at a path has changed. A conflict can
 * also be about another object, such as a quota.
 */
function isConflictOf(path: string, error: unknown): boolean {
  if (!(error instanceof ApiError) || error.reason !== 'Conflict') {
    return false;
  }
  const { kind = '', name = '' } = error.details;
  const [object = ''] = path.split('?');
  return object.endsWith(`/${kind}/${encodeURIComponent(name)}`);
}

/** conflict returns the error for a change to an object that has changed since it was read. */
const conflict = () => new ApiError(409, 'Conflict', text.failure.conflict);

/** merge sends a JSON merge patch for an object. */
export async function merge<T>(path: string, patch: unknown): Promise<T> {
  return (await send('PATCH', path, patch, { contentType: 'application/merge-patch+json' })).json() as Promise<T>;
}

/**
 * unchanged returns the JSON patch operation that fails if an object's spec has changed since it
 * was read. A change to the object's status does not cause a failure.
 */
export function unchanged({ metadata }: KubeObject): object {
  return metadata.generation === undefined
    ? { op: 'test', path: '/metadata/resourceVersion', value: metadata.resourceVersion }
    : { op: 'test', path: '/metadata/generation', value: metadata.generation };
}

/**
 * latest returns the later of two versions of an object. The response to a request can contain a
 * newer version than the watch has received. Resource versions are increasing numbers.
 */
export function latest<T extends KubeObject>(watched: T, returned: T): T {
  return Number(watched.metadata.resourceVersion) < Number(returned.metadata.resourceVersion) ? returned : watched;
}

/** failedPatch is the API's message about a JSON patch with an operation that fails. */
const failedPatch = 'the server rejected our request due to an error in our request';

/**
 * patch sends a JSON patch for an object. If the patch contains an unchanged operation, patch
 * reports any failed operation as a conflict, because the API does not say which operation failed.
 */
export async function patch<T>(path: string, operations: object[]): Promise<T> {
  const response = await send('PATCH', path, operations, { contentType: 'application/json-patch+json' }).catch((error: unknown) => {
    const isConflict = error instanceof ApiError && error.status === 422 && error.message === failedPatch && operations.some((operation) => 'op' in operation && operation.op === 'test');
    throw isConflict ? conflict() : error;
  });
  return response.json() as Promise<T>;
}

export async function remove(path: string): Promise<void> {
  await send('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' });
}

/** removeIf deletes an object unless it has changed since it was read. */
export async function removeIf(path: string, { uid, resourceVersion }: KubeObject['metadata']): Promise<void> {
  await send('DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } });
}
