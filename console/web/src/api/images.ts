import { admin } from '../text/admin';
import { ApiError, get, put, removeIf } from './http';
import type { KubeObject } from './types';

/**
 * ImageUsage is an image with the tags that contain it, in the form PROJECT/STREAM:TAG, and the
 * objects that use it.
 */
export interface ImageUsage {
  name: string;
  size: number;
  tags: string[];
  users: string[];
  prunable: boolean;
}

/** Usage is the usage of the cluster's images, as reported by the server. */
export interface Usage {
  images: ImageUsage[];
  /**
   * invalid contains references that cannot be parsed. If there are any, pruning removes nothing.
   */
  invalid: string[];
}

/** Retention defines which images pruning keeps. */
export interface Retention {
  revisions: number;
  minutes: number;
}

/** flagsOf returns the equivalent flags of oc adm prune images. */
export function flagsOf({ revisions, minutes }: Retention): [name: string, value: string][] {
  return [
    ['keep-tag-revisions', String(revisions)],
    ['keep-younger-than', `${minutes}m`],
  ];
}

/** readUsage requests the usage of images, and the images that pruning would remove. */
export function readUsage(retention: Retention, signal?: AbortSignal): Promise<Usage> {
  return get<Usage>(`/slipway/image-usage?${new URLSearchParams(flagsOf(retention))}`, { signal });
}

/** byProject returns the images in each project's image streams. */
export function byProject(images: ImageUsage[]): { project: string; images: ImageUsage[] }[] {
  const projects = new Map<string, ImageUsage[]>();
  for (const image of images) {
    for (const project of new Set(image.tags.map((tag) => tag.split('/')[0] ?? ''))) {
      projects.set(project, [...(projects.get(project) ?? []), image]);
    }
  }
  return [...projects].map(([project, own]) => ({ project, images: own })).sort((a, b) => a.project.localeCompare(b.project));
}

const group = '/apis/image.openshift.io/v1';

/** HistoryOfStream is an image stream with the histories of its tags. */
interface HistoryOfStream extends KubeObject {
  status?: { tags?: { tag: string; items?: { image: string }[] | null }[] };
}

/** isOutdated reports whether a request failed because an object has changed or was deleted. */
const isOutdated = (error: unknown) => error instanceof ApiError && (error.status === 409 || error.status === 404);

/**
 * maxRounds limits how often prune shortens the histories of image streams that keep changing.
 * batchSize is the number of images that prune removes before it reads all references again.
 */
const maxRounds = 5;
const batchSize = 20;

/**
 * prune removes the images in preview, except images that the retention now keeps. It uses the
 * user's permissions. It first removes the images from the histories of image streams. When no
 * stream contains them, it deletes the images themselves. It returns the number of images that it
 * has deleted. It does not delete content from the registry's storage.
 */
export async function prune(retention: Retention, preview: Iterable<string>): Promise<number> {
  const left = new Set(preview);
  let [removed, rounds] = [0, 0];
  for (;;) {
    // A stream or an image that changes after this point gets a new version. A write with the old
    // version fails, and the next round reads the references again.
    const [streams, versions] = [await versionsOf('imagestreams'), await versionsOf('images')];
    const { images, invalid } = await readUsage(retention);
    if (invalid.length > 0) {
      throw new Error(invalid.join('\n'));
    }
    const prunable = images.filter((image) => image.prunable && left.has(image.name));
    const tags = prunable.flatMap((image) => image.tags);
    if (tags.length === 0) {
      const batch = prunable.slice(0, batchSize);
      for (const { name } of batch) {
        left.delete(name);
        const identity = versions.get(name);
        if (identity && (await unlessOutdated(() => removeIf(`${group}/images/${encodeURIComponent(name)}`, identity)))) {
          removed++;
        }
      }
      if (batch.length === prunable.length) {
        return removed;
      }
      continue;
    }
    if (++rounds > maxRounds) {
      throw new Error(admin.images.busy);
    }
    const going = new Set(prunable.map(({ name }) => name));
    for (const stream of new Set(tags.map((tag) => tag.replace(/:[^:]*$/, '')))) {
      const identity = streams.get(stream);
      if (identity) {
        await shorten(identity, going);
      }
    }
  }
}

type Identity = KubeObject['metadata'];

/**
 * versionsOf returns the UID and resource version of each object, keyed by NAME or PROJECT/NAME.
 */
async function versionsOf(resource: string): Promise<Map<string, Identity>> {
  const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
  const { items } = await get<{ items: KubeObject[] }>(`${group}/${resource}`, { accept });
  return new Map(items.map(({ metadata }) => [[metadata.namespace, metadata.name].filter(Boolean).join('/'), metadata]));
}

/**
 * shorten removes images from the tag histories of an image stream, unless the stream has changed
 * since it was listed.
 */
async function shorten({ namespace = '', name, resourceVersion }: Identity, going: Set<string>): Promise<void> {
  const path = `${group}/namespaces/${encodeURIComponent(namespace)}/imagestreams/${encodeURIComponent(name)}`;
  await unlessOutdated(async () => {
    const object = await get<HistoryOfStream>(path);
    if (object.metadata.resourceVersion === resourceVersion) {
      const tags = (object.status?.tags ?? []).map((tag) => ({ ...tag, items: (tag.items ?? []).filter(({ image }) => !going.has(image)) }));
      await put(`${path}/status`, { ...object, status: { ...object.status, tags: tags.filter(({ items }) => items.length > 0) } });
    }
  });
}

/**
 * unlessOutdated makes a change. It returns false if the object has changed since it was read, or
 * was deleted.
 */
async function unlessOutdated(change: () => Promise<void>): Promise<boolean> {
  try {
    await change();
    return true;
  } catch (error) {
    if (!isOutdated(error)) {
      throw error;
    }
    return false;
  }
}
