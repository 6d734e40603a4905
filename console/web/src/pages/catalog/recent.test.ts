import { beforeEach, expect, test } from 'vitest';
import type { Item } from '../../api/catalog';
import { recentItems, remember } from './recent';

const items = ['a', 'b', 'c', 'd'].map((path) => ({ path }) as Item);
const recent = (user: string) => recentItems(items, user).map(({ path }) => path);

beforeEach(() => localStorage.clear());

test('the tiles that a user opened last come first, and are few', () => {
  ['a', 'b', 'c', 'd', 'c'].forEach((path) => remember({ path } as Item, 'ann'));
  expect(recent('ann')).toEqual(['c', 'd', 'b']);
});

test('another user of the browser does not see them', () => {
  remember({ path: 'a' } as Item, 'ann');
  expect(recent('bob')).toEqual([]);
  expect(recentItems(items, undefined)).toEqual([]);
  remember({ path: 'b' } as Item, 'bob');
  expect([recent('bob'), recent('ann')]).toEqual([['b'], []]);
});

test.each(['["a"]', 'no JSON', '{"user": "ann"}'])('invalid stored data is ignored: %s', (value) => {
  localStorage.setItem('recent', value);
  expect(recent('ann')).toEqual([]);
});
