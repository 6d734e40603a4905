import { expect, test } from 'vitest';
import { place } from './layout';

test('nodes are opposite to their neighbors', () => {
  const shapes = ['a', 'b', 'c'].map((id) => ({ id, column: 0 })).concat(['z', 'y', 'x'].map((id) => ({ id, column: 1 })));
  const placed = place(shapes, [
    { from: 'a', to: 'x' },
    { from: 'b', to: 'y' },
    { from: 'c', to: 'z' },
  ]);
  const row = (id: string) => placed.find((shape) => shape.id === id)?.row;
  expect([row('x'), row('y'), row('z')]).toEqual([row('a'), row('b'), row('c')]);
});

test('a node without neighbors has a separate row', () => {
  const placed = place([{ id: 'a', column: 0 }, { id: 'b', column: 0 }], []);
  expect(new Set(placed.map(({ row }) => row)).size).toBe(2);
});
