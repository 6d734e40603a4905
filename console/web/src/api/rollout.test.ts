import { describe, expect, it, vi } from 'vitest';
import { cancel, isDeploying, rolloutOf } from './rollout';
import type { LooseObject } from './types';
import type { Workload } from './workloads';

const workload = (kind: string, spec: object, status: object, generation = 2) => ({ kind, metadata: { name: 'front', namespace: 'a', generation }, spec, status }) as unknown as Workload;
const progressing = (status: string, reason: string, message = '') => ({ conditions: [{ type: 'Progressing', status, reason, message }], observedGeneration: 2 });

describe('A rollout', () => {
  it.each([
    ['in progress', { ...progressing('True', 'ReplicaSetUpdated'), updatedReplicas: 1 }, { done: 1, total: 3 }],
    ['that the server has not seen', { ...progressing('True', 'NewReplicaSetAvailable'), observedGeneration: 1, updatedReplicas: 3 }, { done: 0, total: 3 }],
    ['that failed', { ...progressing('False', 'ProgressDeadlineExceeded', 'too slow'), updatedReplicas: 1 }, { done: 1, total: 3, failure: 'too slow' }],
    ['that has succeeded', { ...progressing('True', 'NewReplicaSetAvailable'), updatedReplicas: 3, readyReplicas: 1 }, undefined],
    ['that never began', {}, undefined],
  ])('of a deployment %s', (_, status, expected) => {
    expect(rolloutOf(workload('Deployment', { replicas: 3 }, status))).toEqual(expected);
  });

  it('is not shown while it is paused, or without pods', () => {
    const status = progressing('True', 'ReplicaSetUpdated');
    expect([{ replicas: 3, paused: true }, { replicas: 0 }].map((spec) => rolloutOf(workload('Deployment', spec, status)))).toEqual([undefined, undefined]);
  });

  it('of a stateful set compares revisions, and of a daemon set nodes', () => {
    const set = (status: object) => rolloutOf(workload('StatefulSet', { replicas: 2 }, { observedGeneration: 2, ...status }));
    expect(set({ currentRevision: 'a', updateRevision: 'b', updatedReplicas: 1 })).toEqual({ done: 1, total: 2 });
    expect(set({ currentRevision: 'b', updateRevision: 'b' })).toBeUndefined();
    const daemons = (updatedNumberScheduled: number) => rolloutOf(workload('DaemonSet', {}, { observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled }));
    expect([daemons(1), daemons(2)]).toEqual([{ done: 1, total: 2 }, undefined]);
  });
});

it.each([
  [{ ...progressing('True', 'ReplicationControllerUpdated'), latestVersion: 3 }, true],
  [{ ...progressing('Unknown', ''), latestVersion: 3 }, true],
  [{ ...progressing('True', 'NewReplicationControllerAvailable'), latestVersion: 3 }, false],
  [{ ...progressing('False', 'RolloutCancelled'), latestVersion: 3 }, false],
  [{}, false],
])('knows which deployments can be canceled: %o', (status, expected) => {
  expect(isDeploying(workload('DeploymentConfig', { replicas: 1 }, status) as unknown as LooseObject)).toBe(expected);
});

it('cancels the latest deployment of a configuration', async () => {
  const request = vi.fn<typeof fetch>().mockResolvedValue(new Response('{}'));
  vi.stubGlobal('fetch', request);
  await cancel(workload('DeploymentConfig', {}, { latestVersion: 3 }) as unknown as LooseObject);
  const [address, options] = request.mock.calls[0] ?? [];
  expect(address).toBe('/console/proxy/api/v1/namespaces/a/replicationcontrollers/front-3');
  expect(JSON.parse(String(options?.body))).toMatchObject({ metadata: { annotations: { 'openshift.io/deployment.cancelled': 'true' } } });
});
