import { get, merge } from './http';
import { controllerOf } from './owners';
import type { KubeObject, LooseObject } from './types';

/** Target is a controller that unidling a service scales up again. */
export interface Target {
  kind: string;
  name: string;
  group?: string;
  replicas: number;
}

/** scalable maps the group and kind of each scalable controller to its collection. */
const scalable: Record<string, string> = {
  ' ReplicationController': '/api/v1/namespaces/NS/replicationcontrollers',
  'apps ReplicaSet': '/apis/apps/v1/namespaces/NS/replicasets',
  'apps StatefulSet': '/apis/apps/v1/namespaces/NS/statefulsets',
  'apps Deployment': '/apis/apps/v1/namespaces/NS/deployments',
  'apps.openshift.io DeploymentConfig': '/apis/apps.openshift.io/v1/namespaces/NS/deploymentconfigs',
};

const idledAt = 'idling.alpha.openshift.io/idled-at';
const unidleTargets = 'idling.alpha.openshift.io/unidle-targets';
const previousScale = 'idling.alpha.openshift.io/previous-scale';

interface Scalable extends KubeObject {
  spec?: { replicas?: number };
}

const groupOf = (apiVersion: string) => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '');

function pathOf(group: string, kind: string, namespace: string, name: string): string | undefined {
  const collection = scalable[`${group} ${kind}`];
  return collection && `${collection.replace('NS', encodeURIComponent(namespace))}/${encodeURIComponent(name)}`;
}

/** targetsOf returns the outermost scalable controllers of a service's pods, as oc idle does. */
export async function targetsOf(service: LooseObject): Promise<Target[]> {
  const { namespace = '' } = service.metadata;
  const selector = (service.spec as { selector?: Record<string, string> }).selector ?? {};
  const labels = Object.entries(selector).map(([key, value]) => `${key}=${value}`).join(',');
  const pods = await get<{ items: KubeObject[] }>(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?${new URLSearchParams({ labelSelector: labels })}`);
  const targets = new Map<string, Target>();
  for (const pod of pods.items) {
    let owner = controllerOf(pod);
    let outermost: Target | undefined;
    while (owner) {
      const group = groupOf(owner.apiVersion);
      const path = pathOf(group, owner.kind, namespace, owner.name);
      if (!path) {
        break;
      }
      const object: Scalable = await get<Scalable>(path);
      outermost = { kind: owner.kind, name: owner.name, ...(group && { group }), replicas: object.spec?.replicas ?? 0 };
      owner = controllerOf(object);
    }
    if (outermost && outermost.replicas > 0) {
      targets.set(`${outermost.kind} ${outermost.name}`, outermost);
    }
  }
  return [...targets.values()];
}

/** idle marks a service as idle, and scales its targets to zero. */
export async function idle(service: LooseObject, targets: Target[]): Promise<void> {
  const { namespace = '', name } = service.metadata;
  const now = new Date().toISOString();
  const annotations = { [idledAt]: now, [unidleTargets]: JSON.stringify(targets) };
  const root = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
  for (const resource of ['endpoints', 'services']) {
    await merge(`${root}/${resource}/${encodeURIComponent(name)}`, { metadata: { annotations } });
  }
  for (const target of targets) {
    const path = pathOf(target.group ?? '', target.kind, namespace, target.name) ?? '';
    await merge(path, { metadata: { annotations: { [idledAt]: now, [previousScale]: String(target.replicas) } }, spec: { replicas: 0 } });
  }
}
