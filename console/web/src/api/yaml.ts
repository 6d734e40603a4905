import { parseAllDocuments, stringify } from 'yaml';
import { text } from '../text/en';
import { ApiError, get, put } from './http';
import type { KubeObject } from './types';

/**
 * maxAliases limits the expansion of aliases, so that a small text cannot expand to a large object.
 */
const maxAliases = 100;

/**
 * InvalidText is the error for text that does not contain a list of objects. It contains the
 * position of the first error.
 */
export class InvalidText extends Error {}

/**
 * parseObjects parses text that consists of one or more YAML or JSON documents. It replaces lists
 * with their items.
 */
export function parseObjects(source: string): KubeObject[] {
  const objects: KubeObject[] = [];
  for (const document of parseAllDocuments(source)) {
    const [error] = document.errors;
    if (error) {
      throw new InvalidText(error.message);
    }
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: maxAliases });
    } catch (cause) {
      throw new InvalidText((cause as Error).message);
    }
    if (value === null || value === undefined) {
      continue;
    }
    objects.push(...expand(value));
  }
  if (objects.length === 0) {
    throw new InvalidText(text.editor.none);
  }
  return objects;
}

function expand(value: unknown): KubeObject[] {
  const object = value as Partial<KubeObject> & { items?: unknown[] };
  if (typeof value !== 'object' || typeof object.apiVersion !== 'string' || typeof object.kind !== 'string') {
    throw new InvalidText(text.editor.untyped);
  }
  if (object.kind === 'List' && Array.isArray(object.items)) {
    return object.items.flatMap(expand);
  }
  return [object as KubeObject];
}

/** toYAML formats an object without the fields that the server manages. */
export function toYAML(object: KubeObject): string {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown };
  const { apiVersion, kind, metadata: __, ...rest } = object;
  return stringify({ apiVersion, kind, metadata, ...rest }, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** comparable formats an object without its status and the fields that every update changes. */
export function comparable(object: KubeObject): string {
  const { resourceVersion: _, generation: __, ...metadata } = object.metadata;
  const { status: ___, ...rest } = object as KubeObject & { status?: unknown };
  return toYAML({ ...rest, metadata: metadata as KubeObject['metadata'] });
}

/**
 * rebase returns an edited object as a change to the current version of the object. It returns the
 * edited object itself if the current version differs from the base in more than the status. It
 * does the same if the edit changes the status or the resource version. In these cases, the server
 * rejects the edit if it is outdated.
 */
export function rebase<T extends KubeObject & { status?: unknown }>(edited: T, base: T, current: T): T {
  const isTyped = edited.metadata.resourceVersion !== base.metadata.resourceVersion || JSON.stringify(edited.status) !== JSON.stringify(base.status);
  if (isTyped || comparable(current) !== comparable(base)) {
    return edited;
  }
  return { ...edited, metadata: { ...edited.metadata, resourceVersion: current.metadata.resourceVersion }, status: current.status };
}

/** maxAttempts is the maximum number of requests to store an object whose status keeps changing. */
const maxAttempts = 5;

/**
 * store stores an edited object and returns the stored version. If only the object's status has
 * changed since the edit began, the edit still applies, even if the watched version is outdated.
 */
export async function store<T extends KubeObject>(path: string, edited: T, base: T, watched: T): Promise<T> {
  let current = watched;
  for (let attempt = 1; ; attempt++) {
    try {
      return await put<T>(path, rebase(edited, base, current));
    } catch (error) {
      if (attempt === maxAttempts || !(error instanceof ApiError && error.reason === 'Conflict')) {
        throw error;
      }
      current = await get<T>(path);
      if (rebase(edited, base, current) === edited) {
        throw error;
      }
    }
  }
}
