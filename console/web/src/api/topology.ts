import type { Collections } from './collections';
import { isBare, selects } from './pods';
import { admission, type Route } from './routes';
import type { LooseObject } from './types';
import { desiredOf, workloadIDs, type Workload } from './workloads';

/** Entity is a project's object in a topology. Its key is unique within the project. */
export interface Entity {
  key: string;
  resource: string;
  kind: string;
  name: string;
  /**
   * layer is the entity's column: 0 for objects at the edge of the cluster, up to the sources of
   * images.
   */
  layer: number;
  state?: 'success' | 'warning' | 'danger';
  /** ready contains a workload's actual and desired number of pods. */
  ready?: [have: number, want: number];
  admitted?: boolean;
}

/** Use means that one entity needs another. It contains the keys of both entities. */
export interface Use {
  from: string;
  to: string;
}

export interface Topology {
  entities: Entity[];
  uses: Use[];
}

const layers: Record<string, number> = {
  'routes.route.openshift.io': 0,
  'ingresses.networking.k8s.io': 0,
  services: 1,
  ...Object.fromEntries([...workloadIDs, 'cronjobs.batch', 'pods'].map((id) => [id, 2])),
  'imagestreams.image.openshift.io': 3,
  persistentvolumeclaims: 3,
  'buildconfigs.build.openshift.io': 4,
};

/** topologyIDs contains the resources of a topology. */
export const topologyIDs = Object.keys(layers);

interface Reference {
  kind?: string;
  name?: string;
  namespace?: string;
}

interface PodSpec {
  containers?: { image?: string }[];
  initContainers?: { image?: string }[];
  volumes?: { persistentVolumeClaim?: { claimName?: string } }[];
}

const triggersKey = 'image.openshift.io/triggers';

/** topologyOf returns a project's objects and their connections. */
export function topologyOf(objects: Pick<Collections, 'of'>, project: string): Topology {
  const entities = new Map<string, Entity>();
  const all: { id: string; object: LooseObject; key: string }[] = [];
  for (const [id, layer] of Object.entries(layers)) {
    for (const object of objects.of(id)) {
      if (id === 'pods' && !isBare(object)) {
        continue; // a workload, build or deployment represents this object
      }
      const key = `${id}/${object.metadata.name}`;
      all.push({ id, object, key });
      entities.set(key, { key, resource: id, kind: object.kind, name: object.metadata.name, layer, ...stateOf(object) });
    }
  }
  const uses = all.flatMap(({ id, object, key }) =>
    targetsOf(id, object, project, all)
      .filter((to) => to !== key && entities.has(to))
      .map((to) => ({ from: key, to })),
  );
  const unique = new Map(uses.map((use) => [`${use.from} ${use.to}`, use]));
  return { entities: [...entities.values()], uses: [...unique.values()] };
}

function stateOf(object: LooseObject): Partial<Entity> {
  switch (object.kind) {
    case 'Route': {
      const { admitted } = admission(object as unknown as Route);
      return { admitted, state: admitted ? 'success' : 'warning' };
    }
    case 'Deployment':
    case 'DeploymentConfig':
    case 'StatefulSet':
    case 'DaemonSet': {
      const workload = object as unknown as Workload;
      const have = workload.status?.readyReplicas ?? workload.status?.numberReady ?? 0;
      const want = desiredOf(workload);
      return { ready: [have, want], state: have >= want ? (want > 0 ? 'success' : undefined) : have > 0 ? 'warning' : 'danger' };
    }
    default:
      return {};
  }
}

/**
 * targetsOf returns the keys of the objects that an object uses, including objects that might not
 * exist.
 */
function targetsOf(id: string, object: LooseObject, project: string, all: { id: string; object: LooseObject; key: string }[]): string[] {
  const spec = (object.spec ?? {}) as Record<string, unknown>;
  switch (object.kind) {
    case 'Route': {
      const route = object as unknown as Route;
      return [route.spec.to?.name, ...(route.spec.alternateBackends ?? []).map(({ name }) => name)].map((name) => `services/${name}`);
    }
    case 'Ingress':
      return ingressServices(spec).map((name) => `services/${name}`);
    case 'Service':
      return all.filter((other) => layers[other.id] === 2 && selects(spec.selector as Record<string, string> | undefined, labelsOf(other.object))).map(({ key }) => key);
    case 'BuildConfig': {
      const strategy = Object.values((spec.strategy ?? {}) as Record<string, { from?: Reference } | string>).find((value) => typeof value === 'object');
      return streamOf(typeof strategy === 'object' ? strategy.from : undefined, project);
    }
    case 'ImageStream':
      return all.filter((other) => other.id.startsWith('buildconfigs') && streamOf(outputOf(other.object), project).includes(`${id}/${object.metadata.name}`)).map(({ key }) => key);
    default:
      return layers[id] === 2 ? podTargets(object, project) : [];
  }
}

function outputOf(config: LooseObject): Reference | undefined {
  return (config.spec as { output?: { to?: Reference } } | undefined)?.output?.to;
}

function streamOf(reference: Reference | undefined, project: string): string[] {
  if (!reference?.name || !['ImageStreamTag', 'ImageStreamImage'].includes(reference.kind ?? '') || (reference.namespace ?? project) !== project) {
    return [];
  }
  return [`imagestreams.image.openshift.io/${reference.name.split(/[:@]/)[0]}`];
}

function ingressServices(spec: Record<string, unknown>): string[] {
  const rules = (spec.rules ?? []) as { http?: { paths?: { backend?: { service?: { name?: string } } }[] } }[];
  const backends = [(spec as { defaultBackend?: { service?: { name?: string } } }).defaultBackend, ...rules.flatMap((rule) => (rule.http?.paths ?? []).map(({ backend }) => backend))];
  return backends.flatMap((backend) => (backend?.service?.name ? [backend.service.name] : []));
}

/** templateOf returns the spec and labels of a workload's pods. */
function templateOf(object: LooseObject): { metadata?: { labels?: Record<string, string> }; spec?: PodSpec } {
  if (object.kind === 'Pod') {
    return { metadata: object.metadata, spec: object.spec as PodSpec };
  }
  const spec = object.spec as { template?: object; jobTemplate?: { spec?: { template?: object } } } | undefined;
  return (spec?.template ?? spec?.jobTemplate?.spec?.template ?? {}) as ReturnType<typeof templateOf>;
}

/** labelsOf returns the labels of a workload's pods. */
export function labelsOf(object: LooseObject): Record<string, string> {
  return templateOf(object).metadata?.labels ?? {};
}

function podTargets(object: LooseObject, project: string): string[] {
  const { spec } = templateOf(object);
  const images = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].flatMap(({ image }) => {
    const [, namespace, stream] = /^[^/]+\/([^/]+)\/([^/:@]+)[:@]/.exec(image ?? '') ?? [];
    return namespace === project && stream ? [`imagestreams.image.openshift.io/${stream}`] : [];
  });
  const claims = (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) => (claim?.claimName ? [`persistentvolumeclaims/${claim.claimName}`] : []));
  const triggers = (object.spec as { triggers?: { imageChangeParams?: { from?: Reference } }[] } | undefined)?.triggers ?? [];
  const references = [...triggers.map((trigger) => trigger.imageChangeParams?.from), ...annotatedTriggers(object)];
  return [...images, ...claims, ...references.flatMap((reference) => streamOf(reference, project))];
}

function annotatedTriggers(object: LooseObject): (Reference | undefined)[] {
  try {
    const triggers = JSON.parse(object.metadata.annotations?.[triggersKey] ?? '[]') as { from?: Reference }[] | null;
    return Array.isArray(triggers) ? triggers.map((trigger) => trigger?.from) : [];
  } catch {
    return [];
  }
}
