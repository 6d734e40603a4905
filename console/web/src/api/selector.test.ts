import { expect, it } from 'vitest';
import { selectorIndex, selectsLabels } from './selector';

const labels = (number: number) => ({ app: 'shop', 'pod-template-hash': `${number}` });

it('finds the selectors that match labels, in their order', () => {
  const entries = [
    { name: 'all', selector: {} },
    { name: 'one', selector: { matchLabels: labels(1) } },
    { name: 'two', selector: { matchLabels: labels(2) } },
    { name: 'shop', selector: { matchLabels: { app: 'shop' }, matchExpressions: [{ key: 'canary', operator: 'DoesNotExist' }] } },
    { name: 'agents', selector: { matchExpressions: [{ key: 'agent', operator: 'Exists' }] } },
  ];
  const find = selectorIndex(entries);
  const pods: Record<string, string>[] = [{}, labels(1), labels(2), { app: 'shop', canary: '' }, { agent: 'x', app: 'other' }];
  for (const pod of pods) {
    expect(find(pod)).toEqual(entries.filter((entry) => selectsLabels(entry.selector, pod)));
  }
  expect(find(labels(1)).map(({ name }) => name)).toEqual(['all', 'one', 'shop']);
});

it('does not compare labels with selectors that require other labels', () => {
  const read: number[] = [];
  const entries = Array.from({ length: 100 }, (_, number) => ({ selector: { matchLabels: labels(number) } }));
  const find = selectorIndex(entries.map((entry, number) => ({ get selector() { read.push(number); return entry.selector; } })));
  read.length = 0;
  expect(find(labels(7))).toHaveLength(1);
  expect(new Set(read)).toEqual(new Set([7]));
});
