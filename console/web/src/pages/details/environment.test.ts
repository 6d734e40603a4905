import { expect, it } from 'vitest';
import type { LooseObject } from '../../api/types';
import { containersOf, describe, isValid, patchOf, variablesOf } from './environment';

const container = { name: 'web', env: [{ name: 'A', value: '1' }, { name: 'B', valueFrom: { secretKeyRef: { name: 'db', key: 'password' } } }] };
const object = (kind: string, spec: unknown) => ({ kind, metadata: { name: 'front', resourceVersion: '7', generation: 2 }, spec }) as unknown as LooseObject;
const deployment = object('Deployment', { template: { spec: { containers: [container] } } });

it('keeps references when a value changes', () => {
  const [a, b] = variablesOf(containersOf(deployment)[0]);
  expect(describe(b?.reference)).toBe('secretKeyRef db/password');
  expect(patchOf(deployment, 0, [{ ...a, name: 'A', value: '2' }, b as never])).toEqual([
    { op: 'test', path: '/metadata/generation', value: 2 },
    { op: 'add', path: '/spec/template/spec/containers/0/env', value: [{ name: 'A', value: '2' }, container.env[1]] },
  ]);
});

it('reads the containers of a cron job', () => {
  const job = object('CronJob', { jobTemplate: { spec: { template: { spec: { containers: [container] } } } } });
  expect(containersOf(job)).toEqual([container]);
});

it('rejects invalid and duplicate names', () => {
  const names = (...all: string[]) => isValid(all.map((name) => ({ name, value: '' })));
  expect([names('A', 'b.c'), names(''), names('1A'), names('A', 'A')]).toEqual([true, false, false, false]);
});
