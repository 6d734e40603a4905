import { pathOf, resourceOf, type Resource, type Resources } from './discovery';
import { ApiError, create, get, post, put } from './http';
import { text } from '../text/en';
import type { KubeObject } from './types';

/** Applied is the result of applying one object. */
export interface Applied {
  object: KubeObject;
  resource: Resource;
  outcome: 'created' | 'changed';
  /** before is the previous version of a replaced object. */
  before?: KubeObject;
}

/** Placed is an object with its resource and paths. */
interface Placed {
  object: KubeObject;
  resource: Resource;
  /** collection is the path of the object's collection, and path is the path of the object. */
  collection: string;
  path: string;
}

/**
 * place finds the resource of an object, and sets its project. The paths contain the object's
 * version, not the version that the server prefers.
 */
function place(object: KubeObject, project: string | undefined, resources: Resources): Placed {
  const resource = resourceOf(resources, object.apiVersion, object.kind);
  if (!resource) {
    throw new Error(text.failure.unknownKind(object.kind, object.apiVersion));
  }
  const namespace = object.metadata?.namespace ?? project;
  if (resource.namespaced && namespace === undefined) {
    throw new Error(text.import.noProject);
  }
  const versioned = { ...resource, version: object.apiVersion.split('/').pop() ?? resource.version };
  return {
    object: resource.namespaced ? { ...object, metadata: { ...object.metadata, namespace } } : object,
    resource,
    collection: pathOf(versioned, namespace),
    path: pathOf(versioned, namespace, object.metadata?.name),
  };
}

/** forEach runs an action for each object in turn. Its errors begin with the object's name. */
async function forEach(objects: KubeObject[], project: string | undefined, resources: Resources, run: (placed: Placed) => Promise<Applied>): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const object of objects) {
    try {
      applied.push(await run(place(object, project, resources)));
    } catch (error) {
      throw new Error(`${object.kind} ${object.metadata?.name ?? ''}: ${(error as Error).message}`, { cause: error });
    }
  }
  return applied;
}

/**
 * apply creates objects in a project, and replaces objects that exist. Without a project, each
 * object must name its own project, unless it applies to the whole cluster. With dryRun, apply
 * changes nothing.
 */
export function apply(objects: KubeObject[], project: string | undefined, resources: Resources, dryRun: boolean): Promise<Applied[]> {
  return forEach(objects, project, resources, (placed) => applyOne(placed, dryRun));
}

async function createOne({ object, resource, collection }: Placed, dryRun: boolean): Promise<Applied> {
  const { name } = object.metadata;
  const send = () => {
    if (dryRun) {
      return post<KubeObject>(collection + '?dryRun=All', object, { repeatable: true });
    }
    return name ? create<KubeObject>(collection, name, object) : post<KubeObject>(collection, object);
  };
  return { object: await send(), resource, outcome: 'created' };
}

async function applyOne(placed: Placed, dryRun: boolean): Promise<Applied> {
  const { object, resource, path } = placed;
  let current: KubeObject;
  try {
    return await createOne(placed, dryRun);
  } catch (error) {
    // The object might exist even if the error reports a quota or a missing permission, because the
    // server checks these first.
    if (!object.metadata.name || !(error instanceof ApiError) || !(error.reason === 'AlreadyExists' || error.status === 403)) {
      throw error;
    }
    current = await get<KubeObject>(path).catch(() => {
      throw error;
    });
  }
  const metadata = { ...object.metadata, resourceVersion: object.metadata.resourceVersion ?? current.metadata.resourceVersion };
  return { object: await put<KubeObject>(path + (dryRun ? '?dryRun=All' : ''), { ...object, metadata }), resource, outcome: 'changed', before: current };
}

/**
 * createAll creates objects in a project. It first creates all of them in a dry run. If the server
 * rejects one object, for example because the object exists, createAll creates none.
 */
export async function createAll(objects: KubeObject[], project: string, resources: Resources): Promise<Applied[]> {
  await forEach(objects, project, resources, (placed) => createOne(placed, true));
  return forEach(objects, project, resources, (placed) => createOne(placed, false));
}
