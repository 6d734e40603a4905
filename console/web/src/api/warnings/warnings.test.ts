import { expect, it } from 'vitest';
import type { PodSummary } from '../pods';
import type { LooseObject } from '../types';
import { ids, type State } from './state';
import { warningsOf } from './warnings';
import { deploymentWarnings } from './workloads';

const object = (kind: string, name: string, parts: Record<string, unknown> = {}, annotations: Record<string, string> = {}): LooseObject =>
  ({ kind, metadata: { name, uid: name, creationTimestamp: '2026-01-01T00:00:00Z', annotations, ...('metadata' in parts ? (parts.metadata as object) : {}) }, spec: {}, ...without(parts) }) as unknown as LooseObject;

function without({ metadata: _, ...parts }: Record<string, unknown>): object {
  return parts;
}

const pod = (name: string, parts: Partial<PodSummary> = {}): PodSummary => ({ name, uid: name, labels: {}, status: 'Running', state: 'ready', restarts: 0, isBare: true, ...parts });

/** problemsIn returns the problems of a project, as "level resource name: problem". */
function problemsIn(objects: Record<string, LooseObject[]>, parts: Partial<State> = {}): string[] {
  const state: State = { project: 'shop', of: (id) => objects[id] ?? [], pods: [], waiting: [], secrets: new Set(), refusals: [], ...parts };
  return warningsOf(state).map(({ level, resource, name, problem }) => `${level} ${resource} ${name}: ${problem}`);
}

const template = (volumes: object[] = [], container: object = { readinessProbe: {}, livenessProbe: {} }) => ({ template: { spec: { containers: [container], volumes } } });

it('finds routes without a service or port, and routes that a router rejects', () => {
  const rejected = { ingress: [{ routerName: 'edge', conditions: [{ type: 'Admitted', status: 'False', reason: 'HostAlreadyClaimed', message: 'shop/a' }] }] };
  const services = [object('Service', 'web', { spec: { ports: [{}, {}] } }), object('Service', 'api', { spec: { ports: [{}] } })];
  const routes = [
    object('Route', 'a', { spec: { to: { name: 'gone' }, alternateBackends: [{ name: 'api' }] } }),
    object('Route', 'b', { spec: { to: { name: 'web' } } }),
    object('Route', 'c', { spec: { to: { name: 'web' }, port: { targetPort: 'http' }, tls: {} } }),
    object('Route', 'd', { spec: { to: { name: 'api' }, tls: { termination: 'edge' } }, status: rejected }),
  ];
  expect(problemsIn({ [ids.services]: services, [ids.routes]: routes })).toEqual([
    `error ${ids.routes} c: The route uses TLS, but has no termination type.`,
    `error ${ids.routes} d: The router edge does not accept the route: HostAlreadyClaimed: shop/a`,
    `warning ${ids.routes} a: The service gone does not exist.`,
    `warning ${ids.routes} b: The service web has several ports, but the route does not name one.`,
  ]);
});

it('finds triggers and builds without an image stream, and failed builds and deployments', () => {
  const trigger = (name: string, more: object = {}) => ({ imageChangeParams: { from: { kind: 'ImageStreamTag', name }, ...more } });
  const configs = [
    object('DeploymentConfig', 'a', { spec: { triggers: [trigger('gone'), trigger('used', { lastTriggeredImage: 'x' })] } }),
    object('DeploymentConfig', 'b', { spec: { triggers: [trigger('app:v1')] } }),
    object('DeploymentConfig', 'c', { spec: { triggers: [trigger('app'), trigger('built')] } }),
  ];
  const config = 'openshift.io/deployment-config.name';
  const deployment = (name: string, version: string, phase: string) =>
    object('ReplicationController', name, {}, { [config]: 'c', 'openshift.io/deployment-config.latest-version': version, 'openshift.io/deployment.phase': phase });
  const label = { labels: { 'openshift.io/build-config.name': 'builder' } };
  const objects = {
    [ids.configs]: configs,
    [ids.controllers]: [deployment('c-9', '9', 'Complete'), deployment('c-10', '10', 'Failed')],
    [ids.streams]: [object('ImageStream', 'app', { status: { tags: [{ tag: 'latest', items: [{}] }, { tag: 'v1', items: null }] } }), object('ImageStream', 'built')],
    [ids.buildConfigs]: [
      object('BuildConfig', 'builder', { spec: { output: { to: { kind: 'ImageStreamTag', name: 'built:latest' } } } }),
      object('BuildConfig', 'lost', { spec: { output: { to: { kind: 'ImageStreamTag', name: 'nowhere' } } } }),
    ],
    [ids.builds]: [
      object('Build', 'builder-2', { metadata: { ...label, creationTimestamp: '2026-01-02T00:00:00Z' }, status: { phase: 'Failed' } }),
      object('Build', 'builder-1', { metadata: label, status: { phase: 'Error' } }),
    ],
  };
  expect(problemsIn(objects)).toEqual([
    `error ${ids.configs} a: The image trigger has no effect, because the image stream of gone:latest does not exist.`,
    `error ${ids.configs} c: Deployment #10 has failed.`,
    `error ${ids.builds} builder-2: The build builder-2 has failed.`,
    `error ${ids.buildConfigs} lost: Builds push to nowhere:latest, but its image stream does not exist.`,
    `warning ${ids.configs} b: The image trigger has no effect until a build or an import creates app:v1.`,
  ]);
});

it('links a failed deployment to the log of its deployer pod while that pod exists', () => {
  const annotations = { 'openshift.io/deployment-config.name': 'web', 'openshift.io/deployment-config.latest-version': '2', 'openshift.io/deployment.phase': 'Failed' };
  const warnings = (pods: PodSummary[], more: Record<string, string> = {}) => {
    const objects: Record<string, LooseObject[]> = { [ids.configs]: [object('DeploymentConfig', 'web')], [ids.controllers]: [object('ReplicationController', 'web-2', {}, { ...annotations, ...more })] };
    return deploymentWarnings({ project: 'shop', of: (id) => objects[id], pods, waiting: [], refusals: [] });
  };
  expect(warnings([pod('web-1-deploy'), pod('web-2-deploy')])).toMatchObject([{ resource: 'pods', name: 'web-2-deploy', tab: 'logs', problem: 'Deployment #2 of web has failed.' }]);
  expect(warnings([pod('web-1-deploy')])).toMatchObject([{ resource: ids.configs, name: 'web', tab: 'history' }]);
  expect(warnings([], { 'openshift.io/deployment.cancelled': 'true' })).toEqual([]);
});

it('reports a problem once', () => {
  const route = object('Route', 'a', { spec: { to: { name: 'gone' }, alternateBackends: [{ name: 'gone' }] } });
  expect(problemsIn({ [ids.routes]: [route] })).toEqual([`warning ${ids.routes} a: The service gone does not exist.`]);
});

it('finds builds that trigger each other, once', () => {
  const build = (to: string, from: string) =>
    object('BuildConfig', to, { spec: { strategy: { type: 'Docker', dockerStrategy: { from: { kind: 'ImageStreamTag', name: from } } }, output: { to: { kind: 'ImageStreamTag', name: `${to}:latest` } } } });
  const streams = ['a', 'b', 'c', 'd'].map((name) => object('ImageStream', name));
  expect(problemsIn({ [ids.streams]: streams, [ids.buildConfigs]: [build('a', 'b'), build('b', 'c'), build('c', 'a'), build('d', 'c')] })).toEqual([
    `warning ${ids.buildConfigs} a: These builds trigger each other: a → c → b → a`,
  ]);
});

it('reports why pods cannot be created', () => {
  const refused = { status: { conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota: small' }] } };
  const objects = {
    [ids.deployments]: [object('Deployment', 'web', refused)],
    [ids.replicaSets]: [object('ReplicaSet', 'web-1', { ...refused, metadata: { ownerReferences: [{ controller: true }] } }), object('ReplicaSet', 'own', refused)],
    [ids.controllers]: [
      object('ReplicationController', 'rc', refused),
      object('ReplicationController', 'dc-1', {}, { 'openshift.io/deployment.phase': 'New', 'openshift.io/deployer-pod.create-error': 'no deployer' }),
    ],
    [ids.statefulSets]: [object('StatefulSet', 'db', { spec: { replicas: 2 }, status: { replicas: 1 } }), object('StatefulSet', 'full', { spec: { replicas: 1 }, status: { replicas: 1 } })],
    [ids.jobs]: [object('Job', 'nightly', { status: {} }), object('Job', 'slow', { status: {} })],
    [ids.builds]: [object('Build', 'app-1', { status: { phase: 'New', reason: 'CannotCreateBuildPod', message: 'no build pod' } })],
  };
  const refusals = ['db', 'full', 'nightly'].map((uid) => ({ ...object('Event', uid), lastTimestamp: new Date().toISOString(), message: `no pod of ${uid}`, involvedObject: { kind: 'X', name: uid, uid } }));
  const old = { ...object('Event', 'old'), message: 'an old reason', involvedObject: { kind: 'X', name: 'slow', uid: 'slow' } };
  expect(problemsIn(objects, { refusals: [...refusals, old] })).toEqual([
    `error ${ids.controllers} rc: Pods cannot be created: exceeded quota: small`,
    `error ${ids.controllers} dc-1: Pods cannot be created: no deployer`,
    `error ${ids.deployments} web: Pods cannot be created: exceeded quota: small`,
    `error ${ids.replicaSets} own: Pods cannot be created: exceeded quota: small`,
    `error ${ids.statefulSets} db: Pods cannot be created: no pod of db`,
    `error ${ids.jobs} nightly: Pods cannot be created: no pod of nightly`,
    `error ${ids.builds} app-1: Pods cannot be created: no build pod`,
  ]);
});

it('finds pods that fail, restart or have no node', () => {
  const pods = [pod('a', { status: 'ImagePullBackOff', state: 'failed' }), pod('b', { restarts: 5 }), pod('c', { restarts: 4 }), pod('old', { restarts: 5, sinceRestart: 7200 }), pod('d', { restarts: 9, state: 'completed' })];
  const waiting = [object('Pod', 'e', { status: { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/1 nodes are available' }] } })];
  expect(problemsIn({}, { pods, waiting })).toEqual(['error pods a: ImagePullBackOff', 'warning pods b: Its containers have restarted 5 times.', 'warning pods e: It has no node: 0/1 nodes are available']);
});

it('reports why volumes cannot be mounted, as long as the node tries', () => {
  const failure = (uid: string, message: string, age: number) => ({ ...object('Event', uid), lastTimestamp: new Date(Date.now() - age).toISOString(), message, involvedObject: { kind: 'Pod', name: uid, uid } });
  const mounts = [failure('a', 'no file server', 1000), failure('a', 'an earlier reason', 90_000), failure('b', 'an old reason', 600_000), failure('runs', 'no reason', 1000)];
  const waiting = ['a', 'b', 'c'].map((name) => object('Pod', name, { status: {} }));
  expect(problemsIn({}, { waiting, mounts })).toEqual(['error pods a: A volume cannot be mounted: no file server']);
});

it('finds controllers that select the same pods', () => {
  const objects = {
    [ids.controllers]: [object('ReplicationController', 'web-1', { spec: { selector: { app: 'web', deployment: '1' } } }), object('ReplicationController', 'web-2', { spec: { selector: { app: 'web', deployment: '2' } } })],
    [ids.statefulSets]: [object('StatefulSet', 'all', { spec: {} })],
    [ids.daemonSets]: [object('DaemonSet', 'agent', { spec: { selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] } } })],
  };
  const pods = [pod('x', { labels: { app: 'web', deployment: '1' } }), pod('y', { labels: { app: 'web', deployment: '1' } }), pod('z', { labels: { app: 'other' } })];
  expect(problemsIn(objects, { pods })).toEqual([`warning ${ids.controllers} web-1: It selects the same pod as DaemonSet agent: x`]);
});

it('finds autoscalers without a target, volumes of missing secrets and templates without probes', () => {
  const target = (kind: string, name: string) => ({ spec: { scaleTargetRef: { kind, name } } });
  const objects = {
    [ids.scalers]: [object('HorizontalPodAutoscaler', 'a', target('Deployment', 'gone')), object('HorizontalPodAutoscaler', 'b', target('Deployment', 'web')), object('HorizontalPodAutoscaler', 'c', target('Other', 'x'))],
    [ids.deployments]: [object('Deployment', 'web', { spec: template([{ secret: { secretName: 'gone' } }, { secret: { secretName: 'key' } }, { secret: { secretName: 'perhaps', optional: true } }]) })],
    [ids.configs]: [object('DeploymentConfig', 'slow', { spec: template([], {}) })],
  };
  expect(problemsIn(objects, { secrets: new Set(['key']), waiting: [object('Pod', 'bare', { spec: { volumes: [{ secret: { secretName: 'gone' } }] } })] })).toEqual([
    `error ${ids.scalers} a: The target Deployment gone does not exist.`,
    `warning ${ids.deployments} web: The secret gone of a volume does not exist.`,
    'warning pods bare: The secret gone of a volume does not exist.',
    `warning ${ids.configs} slow: It has no readiness probe, so pods receive requests before they are ready.`,
    `info ${ids.configs} slow: It has no liveness probe, so containers that hang are not restarted.`,
  ]);
});

it('reports nothing that depends on objects which the user may not list', () => {
  const objects: Record<string, LooseObject[]> = {
    [ids.routes]: [object('Route', 'a', { spec: { to: { name: 'web' } } })],
    [ids.buildConfigs]: [object('BuildConfig', 'b', { spec: { output: { to: { kind: 'ImageStreamTag', name: 'app' } } } })],
    [ids.scalers]: [object('HorizontalPodAutoscaler', 'c', { spec: { scaleTargetRef: { kind: 'Deployment', name: 'web' } } })],
    [ids.statefulSets]: [object('StatefulSet', 'd', { spec: { replicas: 0, ...template([{ secret: { secretName: 'key' } }]) } })],
  };
  expect(problemsIn({}, { of: (id) => objects[id], secrets: undefined })).toEqual([]);
});
