import { expect, test } from 'vitest';
import type { Route } from './routes';
import { commandOf, operationsOf, sharesOf, trafficOf } from './traffic';

const route = { spec: { to: { name: 'a' }, alternateBackends: [{ name: 'b', weight: 300 }] } } as Route;

test('weights are shares of the requests', () => {
  expect(trafficOf(route)).toEqual([{ name: 'a', weight: 100 }, { name: 'b', weight: 300 }]);
  expect(sharesOf(trafficOf(route))).toEqual([25, 75]);
  expect(sharesOf([{ name: 'a', weight: 0 }])).toEqual([0]);
});

test('a change names all services', () => {
  expect(operationsOf([{ name: 'a', weight: 1 }, { name: 'b', weight: 2 }])).toEqual([
    { op: 'replace', path: '/spec/to', value: { kind: 'Service', name: 'a', weight: 1 } },
    { op: 'add', path: '/spec/alternateBackends', value: [{ kind: 'Service', name: 'b', weight: 2 }] },
  ]);
  expect(commandOf('r', 'p', [{ name: 'a', weight: 1 }, { name: 'b', weight: 2 }])).toBe('oc set route-backends r a=1 b=2 -n p');
  expect(commandOf('r', 'p', [{ name: '$(id)', weight: 1 }])).toBe(`oc set route-backends r '$(id)=1' -n p`);
});
