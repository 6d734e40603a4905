import { expect, test } from 'vitest';
import { context, diff } from './diff';

const show = (before: string, after: string) => diff(before, after).map(({ kind, line }) => kind + line);

test('a difference has the lines of both texts', () => {
  expect(show('a\nb\nc', 'a\nx\nc\nd')).toEqual([' a', '-b', '+x', ' c', '+d']);
  expect(show('a', 'a')).toEqual([' a']);
  expect(show('', 'a')).toEqual(['-', '+a']);
});

test('lines far from changes are omitted', () => {
  const before = Array.from({ length: 20 }, (_, n) => String(n)).join('\n');
  const shown = context(diff(before, before.replace('\n10\n', '\nten\n')), 1);
  expect(shown.map((change) => change && change.kind + change.line)).toEqual([' 9', '-10', '+ten', ' 11', null]);
});
