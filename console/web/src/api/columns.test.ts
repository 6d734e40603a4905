import { expect, it } from 'vitest';
import { cellsOf, titleOf } from './columns';
import type { Column, Row } from './types';

const column = (name: string, priority = 0) => ({ name, priority }) as Column;

it('returns the cells of an object, including the columns that lists omit', () => {
  const columns = ['Name', 'Completions', 'Suspend', 'Duration', 'Age'].map((name) => column(name)).concat(column('Images', 1));
  const items = [{ cells: ['nightly', '0/1', false, null, '5m', 'tools:latest'] } as unknown as Row];
  expect(cellsOf({ columns, items })).toEqual([
    ['Completions', '0/1'],
    ['Suspend', 'false'],
    ['Images', 'tools:latest'],
  ]);
  expect(cellsOf({ columns, items: [] })).toEqual([]);
});

it.each([
  ['AllowVolumeExpansion', 'Allow Volume Expansion'],
  ['ReadOnlyRootFS', 'Read Only Root FS'],
  ['SELinux', 'SELinux'],
  ['Cluster-IP', 'Cluster-IP'],
  ['CPU(cores)', 'CPU(cores)'],
])('separates the words of the column %s', (name, title) => expect(titleOf(name)).toBe(title));
