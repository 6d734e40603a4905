import { expect, test } from 'vitest';
import { topologyOf } from './topology';
import type { LooseObject } from './types';

const object = (kind: string, name: string, fields: object = {}, metadata: object = {}) =>
  ({ apiVersion: 'v1', kind, metadata: { name, uid: `${kind} ${name}`, resourceVersion: '1', creationTimestamp: '', ...metadata }, ...fields }) as LooseObject;

const objects: Record<string, LooseObject[]> = {
  'routes.route.openshift.io': [object('Route', 'shop', { spec: { to: { name: 'shop' }, alternateBackends: [{ name: 'missing' }] } })],
  services: [object('Service', 'shop', { spec: { selector: { app: 'shop' } } }), object('Service', 'outside', { spec: {} })],
  'deployments.apps': [
    object('Deployment', 'shop', {
      spec: {
        replicas: 2,
        template: {
          metadata: { labels: { app: 'shop', tier: 'web' } },
          spec: { containers: [{ image: 'registry:5000/project/shop@sha256:1' }], volumes: [{ persistentVolumeClaim: { claimName: 'files' } }] },
        },
      },
      status: { readyReplicas: 1 },
    }),
  ],
  'deploymentconfigs.apps.openshift.io': [
    object('DeploymentConfig', 'worker', { spec: { replicas: 0, triggers: [{ imageChangeParams: { from: { kind: 'ImageStreamTag', name: 'shop:latest' } } }] } }),
  ],
  pods: [
    object('Pod', 'shop-1-deploy', {}, { labels: { 'openshift.io/deployer-pod-for.name': 'shop-1' } }),
    object('Pod', 'bare', {}, { labels: { app: 'shop' } }),
    object('Pod', 'owned', {}, { ownerReferences: [{ controller: true }], labels: { app: 'shop' } }),
  ],
  persistentvolumeclaims: [object('PersistentVolumeClaim', 'files')],
  'imagestreams.image.openshift.io': [object('ImageStream', 'shop'), object('ImageStream', 'base')],
  'buildconfigs.build.openshift.io': [
    object('BuildConfig', 'shop', {
      spec: {
        output: { to: { kind: 'ImageStreamTag', name: 'shop:latest' } },
        strategy: { type: 'Source', sourceStrategy: { from: { kind: 'ImageStreamTag', name: 'base:1', namespace: 'project' } } },
      },
    }),
  ],
};

test('a topology connects a project from its routes to its builds', () => {
  const { entities, uses } = topologyOf({ of: (id) => objects[id] ?? [] }, 'project');
  expect(uses.map(({ from, to }) => `${from} > ${to}`).sort()).toEqual([
    'buildconfigs.build.openshift.io/shop > imagestreams.image.openshift.io/base',
    'deploymentconfigs.apps.openshift.io/worker > imagestreams.image.openshift.io/shop',
    'deployments.apps/shop > imagestreams.image.openshift.io/shop',
    'deployments.apps/shop > persistentvolumeclaims/files',
    'imagestreams.image.openshift.io/shop > buildconfigs.build.openshift.io/shop',
    'routes.route.openshift.io/shop > services/shop',
    'services/shop > deployments.apps/shop',
    'services/shop > pods/bare',
  ]);
  const of = (key: string) => entities.find((entity) => entity.key === key);
  expect(of('deployments.apps/shop')).toMatchObject({ ready: [1, 2], state: 'warning' });
  expect(of('pods/owned')).toBeUndefined();
});

test('an invalid trigger is ignored', () => {
  const hostile = object('Deployment', 'x', { spec: {} }, { annotations: { 'image.openshift.io/triggers': '{"a":' } });
  expect(topologyOf({ of: (id) => (id === 'deployments.apps' ? [hostile] : []) }, 'project').uses).toEqual([]);
});
