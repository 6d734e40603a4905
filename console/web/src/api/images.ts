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
 * maxRounds is the maximum number of times that prune shortens the histories of image streams that
 * keep changing.
 */
const maxRounds = 5;

/**
 * prune removes the images that a retention does not keep, with the user's permissions. It first
 * removes them from the histories of image streams. It then reads all references again, and deletes
 * the images themselves. It returns the number of images that it has deleted. It does not delete
 * content from the registry's storage.
 */
export async function prune(retention: Retention): Promise<number> {
  for (let round = 1; ; round++) {
    // An image that is pushed or imported again gets a new version. A deletion with the old version
    // fails.
    const versions = await versionsOf();
    const { images, invalid } = await readUsage(retention);
    if (invalid.length > 0) {
      throw new Error(invalid.join('\n'));
    }
    const prunable = images.filter((image) => image.prunable);
    const going = new Set(prunable.map(({ name }) => name));
    const streams = new Set(prunable.flatMap(({ tags }) => tags.map((tag) => tag.replace(/:[^:]*$/, ''))));
    if (streams.size === 0) {
      return removeAll(prunable, versions);
    }
    if (round > maxRounds) {
      throw new Error(admin.images.busy);
    }
    for (const stream of streams) {
      await shorten(stream, going);
    }
  }
}

/** versionsOf returns the UID and resource version of each image, by name. */
async function versionsOf(): Promise<Map<string, KubeObject['metadata']>> {
  const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
  const { items } = await get<{ items: KubeObject[] }>(`${group}/images`, { accept });
  return new Map(items.map(({ metadata }) => [metadata.name, metadata]));
}

/**
 * shorten removes images from the tag histories of the image stream PROJECT/NAME, unless the stream
 * has changed since it was read.
 */
async function shorten(stream: string, going: Set<string>): Promise<void> {
  const [project = '', name = ''] = stream.split('/');
  const path = `${group}/namespaces/${encodeURIComponent(project)}/imagestreams/${encodeURIComponent(name)}`;
  try {
    const object = await get<HistoryOfStream>(path);
    const tags = (object.status?.tags ?? []).map((tag) => ({ ...tag, items: (tag.items ?? []).filter(({ image }) => !going.has(image)) }));
    await put(`${path}/status`, { ...object, status: { ...object.status, tags: tags.filter(({ items }) => items.length > 0) } });
  } catch (error) {
    if (!isOutdated(error)) {
      throw error;
    }
  }
}

/** removeAll deletes the images that have not changed, and returns their number. */
async function removeAll(images: ImageUsage[], versions: Map<string, KubeObject['metadata']>): Promise<number> {
  let count = 0;
  for (const { name } of images) {
    const known = versions.get(name);
    try {
      if (known) {
        await removeIf(`${group}/images/${encodeURIComponent(name)}`, known);
        count++;
      }
    } catch (error) {
      if (!isOutdated(error)) {
        throw error;
      }
    }
  }
  return count;
}
