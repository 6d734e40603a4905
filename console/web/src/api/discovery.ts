import { get } from './http';

/** Resource is an API resource in its preferred version. */
export interface Resource {
  /** id is the resource's name with its group, as in oc commands: pods, deployments.apps. */
  id: string;
  name: string;
  group: string;
  version: string;
  kind: string;
  singular: string;
  namespaced: boolean;
  verbs: string[];
  subresources: string[];
}

interface DiscoveryList {
  items: {
    metadata: { name?: string };
    versions: {
      version: string;
      resources?: {
        resource: string;
        responseKind: { kind: string };
        scope: 'Namespaced' | 'Cluster';
        singularResource: string;
        verbs: string[];
        subresources?: { subresource: string }[];
      }[];
    }[];
  }[];
}

/** Resources contains all resources, keyed by ID. */
export type Resources = ReadonlyMap<string, Resource>;

const accept =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList';

/** discover requests all resources from the server. */
export async function discover(): Promise<Resources> {
  const lists = await Promise.all(['/api', '/apis'].map((path) => get<DiscoveryList>(path, { accept })));
  const resources = new Map<string, Resource>();
  for (const group of lists.flatMap((list) => list.items)) {
    const groupName = group.metadata.name ?? '';
    for (const version of group.versions) {
      for (const r of version.resources ?? []) {
        const id = groupName === '' ? r.resource : `${r.resource}.${groupName}`;
        if (!resources.has(id)) {
          resources.set(id, {
            id,
            name: r.resource,
            group: groupName,
            version: version.version,
            kind: r.responseKind.kind,
            singular: r.singularResource,
            namespaced: r.scope === 'Namespaced',
            verbs: r.verbs,
            subresources: (r.subresources ?? []).map((s) => s.subresource),
          });
        }
      }
    }
  }
  return resources;
}

/** apiVersion returns the value of the apiVersion field in a resource's objects. */
export function apiVersion(resource: Pick<Resource, 'group' | 'version'>): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** pathOf returns the path of a collection or, with a name, of one object. */
export function pathOf(resource: Pick<Resource, 'group' | 'version' | 'name' | 'namespaced'>, namespace?: string, name?: string): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${resource.name}${name === undefined ? '' : '/' + encodeURIComponent(name)}`;
}

/** resourceOf returns the resource for an apiVersion and a kind. */
export function resourceOf(resources: Resources, version: string, kind: string): Resource | undefined {
  const [group] = version.includes('/') ? version.split('/') : [''];
  for (const r of resources.values()) {
    if (r.kind === kind && r.group === group) {
      return r;
    }
  }
  return undefined;
}
