import { afterEach, expect, it, vi } from 'vitest';
import { numberOf, revisionsOf, revisionsPath, rollBack, type Revision } from './history';
import type { LooseObject } from './types';

afterEach(() => vi.unstubAllGlobals());

/** server responds to each request with an object, and returns the requests that it receives. */
function server(answer: object) {
  const requests: { method: string; path: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', (address: string, init: RequestInit) => {
    requests.push({ method: init.method ?? '', path: address, body: JSON.parse(String(init.body)) });
    return Promise.resolve(new Response(JSON.stringify(answer)));
  });
  return requests;
}

const included = { replicas: true, strategy: false, triggers: false };
const object = (kind: string) => ({ apiVersion: 'v1', kind, metadata: { name: 'front', uid: 'u', resourceVersion: '9' } }) as unknown as LooseObject;
const template = { metadata: { labels: { app: 'a', 'pod-template-hash': 'h' } }, spec: { containers: [] } };
const revision = (metadata: object) => ({ metadata, spec: { template } }) as unknown as Revision;

it('lists the revisions of a deployment, newest first', () => {
  const of = (n: string, uid: string) => revision({ name: n, ownerReferences: [{ uid }], annotations: { 'deployment.kubernetes.io/revision': n } });
  expect(revisionsOf(object('Deployment'), [of('2', 'u'), of('10', 'u'), of('3', 'other')]).map(numberOf)).toEqual([10, 2]);
});

it('lists the revisions of a deployment configuration', () => {
  const of = (n: string, config: string) => revision({ annotations: { 'openshift.io/deployment-config.name': config, 'openshift.io/deployment-config.latest-version': n } });
  expect(revisionsOf(object('DeploymentConfig'), [of('1', 'front'), of('2', 'front'), of('1', 'other')]).map(numberOf)).toEqual([2, 1]);
});

it('rolls a deployment back without the label of the replica set', async () => {
  const requests = server({});
  await rollBack('/front', object('Deployment'), revision({ name: 'front-1' }), included);
  expect(requests[0]?.body).toEqual([
    { op: 'test', path: '/metadata/resourceVersion', value: '9' },
    { op: 'replace', path: '/spec/template', value: { metadata: { labels: { app: 'a' } }, spec: { containers: [] } } },
  ]);
});

it('stores what the server returns for a deployment configuration', async () => {
  const requests = server({ metadata: { name: 'rolled-back' } });
  await rollBack('/front', object('DeploymentConfig'), revision({ name: 'front-1' }), included);
  expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /console/proxy/front/rollback', 'PUT /console/proxy/front']);
  expect(requests[0]?.body).toMatchObject({ name: 'front', spec: { from: { name: 'front-1' }, includeTemplate: true, includeReplicationMeta: true, includeStrategy: false, includeTriggers: false } });
  expect(requests[1]?.body).toEqual({ metadata: { name: 'rolled-back' } });
});

it('rolls a stateful set back to the template in a controller revision', async () => {
  const requests = server({});
  const set = object('StatefulSet');
  const of = (number: number) =>
    ({ metadata: { name: `front-${number}`, ownerReferences: [{ uid: 'u' }] }, revision: number, data: { spec: { template: { ...template, $patch: 'replace' } } } }) as unknown as Revision;
  const [newest, oldest] = revisionsOf(set, [of(9), of(10)]) as [Revision, Revision];
  expect([numberOf(newest), numberOf(oldest)]).toEqual([10, 9]);
  await rollBack('/front', set, oldest, included);
  expect(requests[0]?.body).toEqual([
    { op: 'test', path: '/metadata/resourceVersion', value: '9' },
    { op: 'replace', path: '/spec/template', value: { metadata: { labels: { app: 'a' } }, spec: { containers: [] } } },
  ]);
});

it.each([
  ['Deployment', '/apis/apps/v1/namespaces/shop/replicasets'],
  ['DeploymentConfig', '/api/v1/namespaces/shop/replicationcontrollers'],
  ['DaemonSet', '/apis/apps/v1/namespaces/shop/controllerrevisions'],
])('reads the revisions of a %s', (kind, path) => {
  expect(revisionsPath({ ...object(kind), metadata: { ...object(kind).metadata, namespace: 'shop' } })).toBe(path);
});
