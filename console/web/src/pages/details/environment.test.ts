import { expect, it } from 'vitest';
import type { LooseObject } from '../../api/types';
import { describe, isValid, partsOf, patchOf, variablesOf, type Part } from './environment';

const container = { name: 'web', env: [{ name: 'A', value: '1' }, { name: 'B', valueFrom: { secretKeyRef: { name: 'db', key: 'password' } } }] };
const object = (kind: string, spec: unknown) => ({ kind, metadata: { name: 'front', resourceVersion: '7', generation: 2 }, spec }) as unknown as LooseObject;
const deployment = object('Deployment', { template: { spec: { containers: [container] } } });

it('keeps references when a value changes', () => {
  const [web] = partsOf(deployment) as [Part];
  const [a, b] = variablesOf(web);
  expect(describe(b?.reference)).toBe('secretKeyRef db/password');
  expect(patchOf(deployment, web, [{ ...a, name: 'A', value: '2' }, b as never])).toEqual([
    { op: 'test', path: '/metadata/generation', value: 2 },
    { op: 'add', path: '/spec/template/spec/containers/0/env', value: [{ name: 'A', value: '2' }, container.env[1]] },
  ]);
});

it('reads the containers of a cron job', () => {
  const job = object('CronJob', { jobTemplate: { spec: { template: { spec: { containers: [container] } } } } });
  expect(partsOf(job)).toEqual([{ name: 'web', path: ['spec', 'jobTemplate', 'spec', 'template', 'spec', 'containers', 0], env: container.env }]);
});

it('changes the variables of the strategy of a build configuration', () => {
  const config = object('BuildConfig', { strategy: { type: 'Source', sourceStrategy: { env: [{ name: 'A', value: '1' }] } } });
  const [strategy] = partsOf(config) as [Part];
  expect(variablesOf(strategy)).toEqual([{ name: 'A', value: '1' }]);
  expect(patchOf(config, strategy, [{ name: 'B', value: '2' }])[1]).toEqual({ op: 'add', path: '/spec/strategy/sourceStrategy/env', value: [{ name: 'B', value: '2' }] });
});

it('rejects invalid and duplicate names', () => {
  const names = (...all: string[]) => isValid(all.map((name) => ({ name, value: '' })));
  expect([names('A', 'b.c'), names(''), names('1A'), names('A', 'A')]).toEqual([true, false, false, false]);
});
