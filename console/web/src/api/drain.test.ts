import { expect, test } from 'vitest';
import { planOf, type PodOfNode } from './drain';

function pod(name: string, fields: { owner?: string; mirror?: boolean; emptyDir?: boolean; phase?: string }): PodOfNode {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      uid: name,
      resourceVersion: '1',
      creationTimestamp: '',
      annotations: fields.mirror ? { 'kubernetes.io/config.mirror': 'x' } : undefined,
      ownerReferences: fields.owner ? [{ apiVersion: 'apps/v1', kind: fields.owner, name: 'o', uid: 'o', controller: true }] : undefined,
    },
    spec: { volumes: fields.emptyDir ? [{ emptyDir: {} }] : [] },
    status: { phase: fields.phase ?? 'Running' },
  };
}

test('a drain skips daemon sets and static pods, and requests confirmation for local data and pods without a controller', () => {
  const plan = planOf([
    pod('web', { owner: 'ReplicaSet', emptyDir: true }),
    pod('agent', { owner: 'DaemonSet' }),
    pod('ended-agent', { owner: 'DaemonSet', phase: 'Succeeded' }),
    pod('static', { mirror: true, owner: 'Node' }),
    pod('bare', {}),
    pod('done', { phase: 'Failed', emptyDir: true }),
  ]);
  const names = (pods: PodOfNode[]) => pods.map(({ metadata }) => metadata.name);
  expect(names(plan.evicted)).toEqual(['web', 'ended-agent', 'bare', 'done']);
  expect(names(plan.skipped)).toEqual(['agent', 'static']);
  expect(names(plan.localData)).toEqual(['web']);
  expect(names(plan.unmanaged)).toEqual(['bare']);
});
