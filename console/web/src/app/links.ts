import type { Resource } from '../api/discovery';

/** linkTo returns the path of an object's page. */
export function linkTo(resource: Resource, namespace: string | undefined, name: string): string {
  const root = resource.namespaced && namespace ? `/project/${namespace}` : '/cluster';
  return `${root}/${resource.id}/${encodeURIComponent(name)}`;
}
