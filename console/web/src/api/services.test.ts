import { expect, it } from 'vitest';
import { orderOf, valueOf } from './services';

it('orders an instance with a binding', () => {
  const [instance, binding] = orderOf({ name: 'db', place: 'cluster', className: 'c', planName: 'p', parameters: { size: 1 }, bind: true }) as unknown as { kind: string; spec: object }[];
  expect(instance?.spec).toEqual({ clusterServiceClassName: 'c', clusterServicePlanName: 'p', parameters: { size: 1 } });
  expect(binding).toMatchObject({ kind: 'ServiceBinding', spec: { instanceRef: { name: 'db' }, secretName: 'db' } });
  expect(orderOf({ name: 'db', place: 'a', className: 'c', planName: 'p', parameters: {}, bind: false })).toMatchObject([{ spec: { serviceClassName: 'c', servicePlanName: 'p' } }]);
});

it('reads values by their types', () => {
  expect([valueOf({ type: 'integer' }, '3'), valueOf({ type: 'boolean' }, 'true'), valueOf({ type: 'string' }, ' a'), valueOf({ type: 'array' }, '[1]')]).toEqual([3, true, ' a', [1]]);
  expect([valueOf({ type: 'integer' }, ''), valueOf({ type: 'string' }, '')]).toEqual([undefined, undefined]);
  expect(() => valueOf({ type: 'integer' }, '1.5')).toThrow('not a number');
});
