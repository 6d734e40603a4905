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

/**
 * apply creates objects in a project, and replaces objects that exist. Without a project, each
 * object must name its own project, unless it applies to the whole cluster. With dryRun, apply
 * changes nothing.
 */
export async function apply(objects: KubeObject[], project: string | undefined, resources: Resources, dryRun: boolean): Promise<Applied[]> {
  const applied: Applied[] = [];
  for (const object of objects) {
    const resource = resourceOf(resources, object.apiVersion, object.kind);
    if (!resource) {
      throw new Error(text.failure.unknownKind(object.kind, object.apiVersion));
    }
    try {
      applied.push(await applyOne(object, resource, project, dryRun));
    } catch (error) {
      throw new Error(`${object.kind} ${object.metadata?.name ?? ''}: ${(error as Error).message}`, { cause: error });
    }
  }
  return applied;
}

function createOne(collection: string, object: KubeObject, dryRun: boolean): Promise<KubeObject> {
  const { name } = object.metadata;
  if (dryRun) {
    return post<KubeObject>(collection + '?dryRun=All', object, { repeatable: true });
  }
  return name ? create<KubeObject>(collection, name, object) : post<KubeObject>(collection, object);
}

async function applyOne(object: KubeObject, resource: Resource, project: string | undefined, dryRun: boolean): Promise<Applied> {
  const namespace = object.metadata?.namespace ?? project;
  if (resource.namespaced && namespace === undefined) {
    throw new Error(text.import.noProject);
  }
  // The path contains the object's version, not the version that the server prefers.
  const version = object.apiVersion.split('/').pop() ?? resource.version;
  const versioned = { ...resource, version };
  const query = dryRun ? '?dryRun=All' : '';
  const placed = resource.namespaced ? { ...object, metadata: { ...object.metadata, namespace } } : object;
  const path = pathOf(versioned, namespace, object.metadata.name);
  let current: KubeObject;
  try {
    return { object: await createOne(pathOf(versioned, namespace), placed, dryRun), resource, outcome: 'created' };
  } catch (error) {
    // If a quota or a missing permission prevents the creation, the server rejects the request
    // before it looks for the object.
    if (!object.metadata.name || !(error instanceof ApiError) || !(error.reason === 'AlreadyExists' || error.status === 403)) {
      throw error;
    }
    current = await get<KubeObject>(path).catch(() => {
      throw error;
    });
  }
  const metadata = { ...placed.metadata, resourceVersion: placed.metadata.resourceVersion ?? current.metadata.resourceVersion };
  return { object: await put<KubeObject>(path + query, { ...placed, metadata }), resource, outcome: 'changed', before: current };
}

/**
 * createAll creates objects in a project. It first creates all of them in a dry run. If the server
 * rejects one object, for example because the object exists, createAll creates none.
 */
export async function createAll(objects: KubeObject[], project: string, resources: Resources): Promise<Applied[]> {
  let created: Applied[] = [];
  for (const dryRun of [true, false]) {
    created = [];
    for (const object of objects) {
      const resource = resourceOf(resources, object.apiVersion, object.kind);
      if (!resource) {
        throw new Error(text.failure.unknownKind(object.kind, object.apiVersion));
      }
      const namespace = object.metadata.namespace ?? project;
      const version = object.apiVersion.split('/').pop() ?? resource.version;
      const path = pathOf({ ...resource, version }, namespace);
      const placed = resource.namespaced ? { ...object, metadata: { ...object.metadata, namespace } } : object;
      try {
        created.push({ object: await createOne(path, placed, dryRun), resource, outcome: 'created' });
      } catch (error) {
        throw new Error(`${object.kind} ${object.metadata.name}: ${(error as Error).message}`, { cause: error });
      }
    }
  }
  return created;
}
