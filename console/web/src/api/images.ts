import { get } from './http';

/**
 * ImageUsage is an image with the tags PROJECT/STREAM:TAG that contain it, and the objects that use
 * it.
 */
export interface ImageUsage {
  name: string;
  size: number;
  tags: string[];
  users: string[];
  prunable: boolean;
}

/** Usage is the usage of the images of the cluster, as the server reports it. */
export interface Usage {
  images: ImageUsage[];
  /**
   * invalid are references that cannot be parsed. While there are invalid references, pruning
   * removes nothing.
   */
  invalid: string[];
}

/** Retention describes the images that pruning keeps. */
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

/** readUsage requests the usage, and the images that pruning would remove. */
export function readUsage(retention: Retention, signal?: AbortSignal): Promise<Usage> {
  return get<Usage>(`/slipway/image-usage?${new URLSearchParams(flagsOf(retention))}`, { signal });
}

/** byProject returns the images in the image streams of each project. */
export function byProject(images: ImageUsage[]): { project: string; images: ImageUsage[] }[] {
  const projects = new Map<string, ImageUsage[]>();
  for (const image of images) {
    for (const project of new Set(image.tags.map((tag) => tag.split('/')[0] ?? ''))) {
      projects.set(project, [...(projects.get(project) ?? []), image]);
    }
  }
  return [...projects].map(([project, own]) => ({ project, images: own })).sort((a, b) => a.project.localeCompare(b.project));
}
