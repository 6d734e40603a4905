import { get } from './http';
import type { KubeObject, LooseObject } from './types';

/** Image is an image of the cluster. */
export interface Image extends KubeObject {
  dockerImageReference?: string;
  dockerImageLayers?: { size: number }[] | null;
  dockerImageMetadata?: { Size?: number };
  dockerImageManifests?: { digest: string }[] | null;
}

interface Stream extends KubeObject {
  spec?: { tags?: { from?: { name?: string } }[] };
  status?: { tags?: { tag: string; items?: { image: string; created: string }[] | null }[] | null };
}

/** References are the images, and the tags PROJECT/STREAM:TAG, that objects use, with the objects. */
export interface References {
  images: Map<string, Set<string>>;
  tags: Map<string, Set<string>>;
}

/** Store is what pruning decides by. */
export interface Store {
  images: Image[];
  streams: Stream[];
  references: References;
}

/** Retention says what pruning keeps. */
export interface Retention {
  revisions: number;
  /** younger is an age in milliseconds. */
  younger: number;
}

const listPaths = [
  '/api/v1/pods', '/api/v1/replicationcontrollers', '/apis/apps/v1/deployments', '/apis/apps/v1/replicasets', '/apis/apps/v1/daemonsets',
  '/apis/apps/v1/statefulsets', '/apis/batch/v1/jobs', '/apis/batch/v1/cronjobs', '/apis/apps.openshift.io/v1/deploymentconfigs',
  '/apis/build.openshift.io/v1/buildconfigs', '/apis/build.openshift.io/v1/builds',
];

/** readStore reads the images before everything that can refer to them, as oc adm prune images does. */
export async function readStore(younger: number): Promise<Store> {
  const { items: images } = await get<{ items: Image[] }>('/apis/image.openshift.io/v1/images');
  const { items: streams } = await get<{ items: Stream[] }>('/apis/image.openshift.io/v1/imagestreams');
  const lists = await Promise.all(listPaths.map((path) => get<{ kind: string; items: LooseObject[] | null }>(path)));
  const objects = lists.flatMap(({ kind, items }) => (items ?? []).map((item) => ({ ...item, kind: kind.replace(/List$/, '') })));
  return { images, streams, references: referencesOf(objects, Date.now() - younger) };
}

const digest = /sha256:[0-9a-f]{64}/g;

/** referencesOf finds the images in objects. Pods that ended before a time refer to none. */
export function referencesOf(objects: LooseObject[], since: number): References {
  const references: References = { images: new Map(), tags: new Map() };
  for (const object of objects) {
    const { namespace = '', name, creationTimestamp, annotations } = object.metadata;
    const phase = (object.status as { phase?: string } | undefined)?.phase ?? '';
    if (object.kind === 'Pod' && ['Succeeded', 'Failed'].includes(phase) && Date.parse(creationTimestamp) < since) {
      continue;
    }
    const owner = `${object.kind} ${namespace}/${name}`;
    const triggers = annotations?.['image.openshift.io/triggers'];
    const status = object.kind === 'Pod' ? object.status : undefined;
    collect([object.spec, status, parsed(triggers)], namespace, owner, references);
  }
  return references;
}

function parsed(content: string | undefined): unknown {
  try {
    return JSON.parse(content ?? '');
  } catch {
    return undefined;
  }
}

function add(to: Map<string, Set<string>>, key: string, owner: string): void {
  to.set(key, (to.get(key) ?? new Set()).add(owner));
}

/** collect walks through a value. Every digest in it is a reference, so that nothing is missed. */
function collect(value: unknown, namespace: string, owner: string, into: References): void {
  if (typeof value === 'string') {
    for (const [found] of value.matchAll(digest)) {
      add(into.images, found, owner);
    }
    return;
  }
  if (typeof value !== 'object' || value === null) {
    return;
  }
  const { kind, name, namespace: other, image } = value as Record<string, unknown>;
  if (kind === 'ImageStreamTag' && typeof name === 'string') {
    add(into.tags, `${typeof other === 'string' && other !== '' ? other : namespace}/${name}`, owner);
  }
  const pullSpec = typeof image === 'string' ? image : kind === 'DockerImage' && typeof name === 'string' ? name : '';
  if (pullSpec !== '' && !pullSpec.includes('@')) {
    add(into.tags, tagOf(pullSpec, namespace), owner);
  }
  Object.values(value).forEach((part) => collect(part, namespace, owner, into));
}

/** tagOf reads an image as a tag of an image stream: the cluster's registry has several names. */
function tagOf(pullSpec: string, namespace: string): string {
  const path = pullSpec.split('/');
  const hasHost = path.length > 1 && /[.:]|^localhost$/.test(path[0] ?? '');
  const name = (hasHost ? path.slice(1) : path).join('/');
  const tagged = name.includes(':') ? name : `${name}:latest`;
  return tagged.includes('/') ? tagged : `${namespace}/${tagged}`;
}

/** sizeOf returns the size of an image in bytes. */
export function sizeOf(image: Image): number {
  return image.dockerImageMetadata?.Size || (image.dockerImageLayers ?? []).reduce((sum, { size }) => sum + size, 0);
}

/** prunable returns the images that oc adm prune images would remove. */
export function prunable({ images, streams, references }: Store, { revisions, younger }: Retention, now: number): Image[] {
  const isYoung = (time: string) => now - Date.parse(time) < younger;
  const stays = new Set(references.images.keys());
  for (const { metadata, spec, status } of streams) {
    const name = `${metadata.namespace}/${metadata.name}`;
    for (const { from } of spec?.tags ?? []) {
      const [, found] = (from?.name ?? '').split('@');
      if (found && revisions > 0) {
        stays.add(found);
      }
    }
    for (const { tag, items } of status?.tags ?? []) {
      (items ?? []).forEach(({ image, created }, index) => {
        if (isYoung(metadata.creationTimestamp) || index < revisions || (index === 0 && references.tags.has(`${name}:${tag}`)) || isYoung(created)) {
          stays.add(image);
        }
      });
    }
  }
  const byName = new Map(images.map((image) => [image.metadata.name, image]));
  const going = new Set(images.filter((image) => !isYoung(image.metadata.creationTimestamp) && !stays.has(image.metadata.name)).map(({ metadata }) => metadata.name));
  const keep = (image: Image | undefined): void =>
    (image?.dockerImageManifests ?? []).forEach((child) => {
      if (going.delete(child.digest)) {
        keep(byName.get(child.digest)); // an index keeps its images
      }
    });
  images.filter(({ metadata }) => !going.has(metadata.name)).forEach(keep);
  return images.filter(({ metadata }) => going.has(metadata.name));
}

/** usersOf returns what uses an image: objects, and those that use a tag whose newest image it is. */
export function usersOf(image: Image, { streams, references }: Store): string[] {
  const users = new Set(references.images.get(image.metadata.name));
  for (const tag of tagsOf(image, streams, true)) {
    references.tags.get(tag)?.forEach((user) => users.add(user));
  }
  return [...users].sort();
}

/** tagsOf returns the tags PROJECT/STREAM:TAG with an image in their history, or only as the newest. */
export function tagsOf(image: Image, streams: Stream[], newest = false): string[] {
  return streams.flatMap(({ metadata, status }) =>
    (status?.tags ?? [])
      .filter(({ items }) => (newest ? items?.slice(0, 1) : items)?.some((item) => item.image === image.metadata.name))
      .map(({ tag }) => `${metadata.namespace}/${metadata.name}:${tag}`),
  );
}
