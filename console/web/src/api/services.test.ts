import { expect, it } from 'vitest';
import { classOf, orderOf, parametersOf, planOf, textsOf, updateOf, valueOf, type Schema, type ServicePlan } from './services';
import type { LooseObject } from './types';

it('orders an instance with a binding', () => {
  const [instance, binding] = orderOf({ name: 'db', place: 'cluster', className: 'c', planName: 'p', parameters: { size: 1 }, binding: { role: 'reader' } }) as unknown as { kind: string; spec: object }[];
  expect(instance?.spec).toEqual({ clusterServiceClassName: 'c', clusterServicePlanName: 'p', parameters: { size: 1 } });
  expect(binding).toMatchObject({ kind: 'ServiceBinding', spec: { instanceRef: { name: 'db' }, secretName: 'db', parameters: { role: 'reader' } } });
  expect(orderOf({ name: 'db', place: 'a', className: 'c', planName: 'p', parameters: {} })).toMatchObject([{ spec: { serviceClassName: 'c', servicePlanName: 'p' } }]);
});

it('reads values by their types', () => {
  expect([valueOf({ type: 'integer' }, '3'), valueOf({ type: 'boolean' }, 'true'), valueOf({ type: 'string' }, ' a'), valueOf({ type: 'array' }, '[1]')]).toEqual([3, true, ' a', [1]]);
  expect([valueOf({ type: 'integer' }, ''), valueOf({ type: 'string' }, '')]).toEqual([undefined, undefined]);
  expect(() => valueOf({ type: 'integer' }, '1.5')).toThrow('not a number');
});

const plans = ['small', 'large'].map((externalName) => ({ metadata: { name: `plan-${externalName}` }, spec: { externalName, externalID: `ID-${externalName}` } })) as unknown as ServicePlan[];
const schema: Schema = { properties: { size: { type: 'integer', default: 1 }, tags: { type: 'array' } } };

it('names the plan of a change in the same way as the instance', () => {
  const [small, large] = plans as [ServicePlan, ServicePlan];
  for (const [field, before, after] of [
    ['clusterServicePlanExternalName', 'small', 'large'],
    ['clusterServicePlanName', 'plan-small', 'plan-large'],
    ['servicePlanExternalID', 'ID-small', 'ID-large'],
  ] as const) {
    const instance = { metadata: { name: 'db', namespace: 'shop' }, spec: { [field]: before } } as unknown as LooseObject;
    expect(planOf(instance, plans)).toBe(small);
    expect(updateOf(instance, large, { size: 2 })).toEqual([
      { op: 'replace', path: `/spec/${field}`, value: after },
      { op: 'add', path: '/spec/parameters', value: { size: 2 } },
    ]);
  }
});

it('finds the class of an instance that the catalog has resolved', () => {
  const instance = (spec: object) => ({ metadata: { name: 'db', namespace: 'shop' }, spec }) as unknown as LooseObject;
  expect(classOf(instance({ clusterServiceClassRef: { name: 'c' } }))).toEqual({ place: 'cluster', name: 'c' });
  expect(classOf(instance({ serviceClassRef: { name: 'c' } }))).toEqual({ place: 'shop', name: 'c' });
  expect(classOf(instance({}))).toEqual({ place: 'cluster', name: '' });
});

it('starts with the current parameters, and keeps parameters without a field', () => {
  const existing = { size: 5, region: 'north' };
  expect(textsOf(schema)).toEqual({ size: '1', tags: '' });
  expect(textsOf(schema, existing)).toEqual({ size: '5', tags: '' });
  expect(parametersOf(schema, { size: '7', tags: '["a"]' }, existing)).toEqual({ region: 'north', size: 7, tags: ['a'] });
  expect(parametersOf(schema, { size: '', tags: '' }, existing)).toEqual({ region: 'north' });
  expect([textsOf(undefined, existing)[''], textsOf(undefined)['']]).toEqual(['{"size":5,"region":"north"}', '']);
  expect(parametersOf(undefined, { '': '{"size": 6}' }, existing)).toEqual({ size: 6 });
  expect(() => parametersOf(schema, { size: 'many' }, existing)).toThrow('many is not a number');
});
