import { afterEach, expect, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import { Rights } from '../../api/rights';
import type { LooseObject } from '../../api/types';
import { actionsOf } from './verbs';

afterEach(() => vi.unstubAllGlobals());

const everything = new Rights([{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }]);
const resourceOf = (name: string, group = '') => ({ id: group ? `${name}.${group}` : name, name, group, version: 'v1', namespaced: true }) as Resource;
const object = (kind: string, parts: object = {}) => ({ apiVersion: 'v1', kind, metadata: { name: 'a', namespace: 'shop', annotations: {} }, ...parts }) as unknown as LooseObject;
const labelsOf = (of: LooseObject, resource: Resource, rights = everything) => actionsOf(of, resource, rights).map(({ label }) => label);

/** perform performs an action, and returns the request that it sends. */
async function perform(of: LooseObject, resource: Resource, label: string): Promise<[method: string, path: string, body: unknown]> {
  const requests: [string, string, unknown][] = [];
  vi.stubGlobal('fetch', (url: string, { method = '', body }: RequestInit) => {
    requests.push([method, url.replace('/console/proxy', ''), JSON.parse(String(body))]);
    return Promise.resolve(new Response('{}'));
  });
  await actionsOf(of, resource, everything).find((action) => action.label === label)?.run();
  return requests[0] as [string, string, unknown];
}

const builds = resourceOf('builds', 'build.openshift.io');
const configs = resourceOf('deploymentconfigs', 'apps.openshift.io');
const deployments = resourceOf('deployments', 'apps');

it('cancels only builds that run, and rebuilds all', async () => {
  expect(labelsOf(object('Build', { status: { phase: 'Running' } }), builds)).toEqual(['Rebuild', 'Cancel build']);
  expect(labelsOf(object('Build', { status: { phase: 'Complete' } }), builds)).toEqual(['Rebuild']);
  expect(await perform(object('Build', { status: { phase: 'New' } }), builds, 'Cancel build')).toEqual(['PATCH', '/apis/build.openshift.io/v1/namespaces/shop/builds/a', { status: { cancelled: true } }]);
  expect(await perform(object('Build'), builds, 'Rebuild')).toEqual([
    'POST',
    '/apis/build.openshift.io/v1/namespaces/shop/builds/a/clone',
    { kind: 'BuildRequest', apiVersion: 'v1', metadata: { name: 'a' } },
  ]);
});

it('pauses and resumes rollouts', async () => {
  expect(await perform(object('Deployment', { spec: {} }), deployments, 'Pause rollouts')).toEqual(['PATCH', '/apis/apps/v1/namespaces/shop/deployments/a', { spec: { paused: true } }]);
  expect(await perform(object('DeploymentConfig', { spec: { paused: true } }), configs, 'Resume rollouts')).toEqual(['PATCH', '/apis/apps.openshift.io/v1/namespaces/shop/deploymentconfigs/a', { spec: { paused: false } }]);
});

it('restarts pods with a new annotation of their template', async () => {
  const [method, , body] = await perform(object('StatefulSet'), resourceOf('statefulsets', 'apps'), 'Restart');
  expect(method).toBe('PATCH');
  expect(body).toEqual({ spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': expect.stringMatching(/^\d{4}-/) as string } } } } });
});

it('cancels the latest deployment of a configuration while it is in progress', async () => {
  const config = (reason: string) => object('DeploymentConfig', { spec: {}, status: { latestVersion: 3, conditions: [{ type: 'Progressing', status: 'Unknown', reason }] } });
  expect(labelsOf(config('NewReplicationControllerAvailable'), configs)).toEqual(['Deploy', 'Pause rollouts']);
  const [method, path] = await perform(config('ReplicationControllerUpdated'), configs, 'Cancel deployment');
  expect([method, path]).toEqual(['PATCH', '/api/v1/namespaces/shop/replicationcontrollers/a-3']);
});

it('marks nodes schedulable or unschedulable', async () => {
  const nodes = { ...resourceOf('nodes'), namespaced: false };
  expect(await perform(object('Node', { spec: {} }), nodes, 'Mark unschedulable')).toEqual(['PATCH', '/api/v1/nodes/a', { spec: { unschedulable: true } }]);
  expect(await perform(object('Node', { spec: { unschedulable: true } }), nodes, 'Mark schedulable')).toEqual(['PATCH', '/api/v1/nodes/a', { spec: { unschedulable: null } }]);
});

it('offers nothing to users who may only read', () => {
  const viewer = new Rights([{ verbs: ['get', 'list', 'watch'], apiGroups: ['*'], resources: ['*'] }]);
  const all: [string, Resource][] = [['Build', builds], ['BuildConfig', resourceOf('buildconfigs', 'build.openshift.io')], ['Deployment', deployments], ['DeploymentConfig', configs], ['Node', resourceOf('nodes')]];
  expect(all.flatMap(([kind, resource]) => labelsOf(object(kind, { spec: {}, status: { phase: 'Running' } }), resource, viewer))).toEqual([]);
});
