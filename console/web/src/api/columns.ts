import type { Row } from './types';
import type { Snapshot } from './watch';

/** titleOf separates the words in a column's name: ReclaimPolicy becomes Reclaim Policy. */
export function titleOf(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1 $2');
}

/**
 * hiddenNames contains the columns that cellsOf omits, because the details page already shows their
 * values.
 */
const hiddenNames = ['Name', 'Namespace', 'Age', 'Created At', 'Labels'];

/**
 * cellsOf returns the columns that the server chooses for an object, with its cells as text. It
 * includes the columns that lists omit.
 */
export function cellsOf({ columns, items }: Pick<Snapshot<Row>, 'columns' | 'items'>): [name: string, value: string][] {
  const cells = items[0]?.cells ?? [];
  return columns.flatMap(({ name }, index): [string, string][] => {
    const cell = cells[index];
    return hiddenNames.includes(name) || cell === null || cell === undefined || cell === '' ? [] : [[name, String(cell)]];
  });
}
