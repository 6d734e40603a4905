import { expect, it } from 'vitest';
import { othersOf } from './others';
import { isBare } from './pods';
import type { LooseObject, Metadata } from './types';

const object = (kind: string, name: string, parts: object): LooseObject => ({ kind, metadata: { name, uid: name }, ...parts }) as unknown as LooseObject;
const condition = (type: string, reason?: string) => ({ conditions: [{ type, status: 'True', reason }] });
const owned = { metadata: { name: 'owned', uid: 'owned', ownerReferences: [{ controller: true }] } };

it('describes bare pods, jobs, cron jobs and service instances', () => {
  const objects: Record<string, LooseObject[]> = {
    'jobs.batch': [
      object('Job', 'import', { status: condition('Complete') }),
      object('Job', 'export', { status: condition('Failed', 'BackoffLimitExceeded') }),
      object('Job', 'mail', { spec: { completions: 3 }, status: { succeeded: 1 } }),
      object('Job', 'owned', owned),
    ],
    'cronjobs.batch': [object('CronJob', 'nightly', { spec: { schedule: '0 3 * * *' } }), object('CronJob', 'never', { spec: { suspend: true } })],
    'serviceinstances.servicecatalog.k8s.io': [object('ServiceInstance', 'db', { status: { lastConditionState: 'Ready', ...condition('Ready') } }), object('ServiceInstance', 'new', {})],
  };
  const pod = (name: string, isBare: boolean) => ({ name, uid: name, labels: {}, status: 'Running', state: 'ready' as const, restarts: 0, isBare });
  expect(othersOf((id) => objects[id] ?? [], [pod('shell', true), pod('web-1', false)]).map(({ name, status, state }) => `${name}: ${status} (${state})`)).toEqual([
    'db: Ready (success)',
    'export: Failed: BackoffLimitExceeded (danger)',
    'import: Complete (success)',
    'mail: 1 of 3 completed (info)',
    'never: Suspended (none)',
    'new: Pending (info)',
    'nightly: Runs at 0 3 * * * (none)',
    'shell: Running (success)',
  ]);
});

it.each([
  [{}, true],
  [{ ownerReferences: [{ controller: true }] }, false],
  [{ ownerReferences: [{ controller: false }] }, true],
  [{ annotations: { 'openshift.io/build.name': 'app-1' } }, false],
  [{ labels: { 'openshift.io/deployer-pod-for.name': 'app-1' } }, false],
])('recognizes bare pods: %j', (metadata, want) => expect(isBare({ metadata: metadata as unknown as Metadata })).toBe(want));
