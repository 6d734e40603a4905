import { expect, it } from 'vitest';
import { quantity } from './quantity';
import { consumptionOf } from './quota';

it.each([
  ['0', 0],
  ['500m', 0.5],
  ['1.5', 1.5],
  ['2Gi', 2147483648],
  ['128974848', 128974848],
  ['129e6', 129000000],
  ['129M', 129000000],
  ['123Ki', 125952],
  ['1E', 1e18],
])('reads the quantity %s', (of, value) => expect(quantity(of)).toBe(value));

it.each(['', 'Gi', '1x', '1 Gi', '--1'])('reads no number from %j', (of) => expect(quantity(of)).toBeNaN());

it('computes the consumption of each resource', () => {
  const hard = { pods: '4', 'requests.cpu': '1', 'limits.memory': '1Gi', secrets: '0', odd: 'much' };
  const used = { pods: '1', 'requests.cpu': '1200m', 'limits.memory': '512Mi', secrets: '0' };
  expect(consumptionOf({ hard, used })).toEqual([
    { resource: 'limits.memory', used: '512Mi', hard: '1Gi', share: 0.5 },
    { resource: 'odd', used: '0', hard: 'much', share: NaN },
    { resource: 'pods', used: '1', hard: '4', share: 0.25 },
    { resource: 'requests.cpu', used: '1200m', hard: '1', share: 1.2 },
    { resource: 'secrets', used: '0', hard: '0', share: 1 },
  ]);
});
