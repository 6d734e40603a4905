import { byCreation } from '../api/creation';
import type { Column, Row } from '../api/types';

/** Sort is a column index and a direction. */
export interface Sort {
  index: number;
  descending: boolean;
}

type Compare = (a: Row, b: Row) => number;

/**
 * Order keeps rows sorted by a column: ages by time, numbers by value, and all other values as
 * text. Rows are immutable: a changed object has a new row. Therefore, Order compares only new
 * rows, which are few in a list of thousands.
 */
export class Order {
  private sorted: Row[] = [];
  private readonly compare: Compare;

  constructor(columns: Column[], sort: Sort) {
    this.compare = comparison(columns, sort);
  }

  /** of returns rows in sorted order. */
  of(rows: Row[]): Row[] {
    const before = new Set(this.sorted);
    const now = new Set(rows);
    const kept = this.sorted.filter((row) => now.has(row));
    const added = rows.filter((row) => !before.has(row)).sort(this.compare);
    this.sorted = merge(kept, added, this.compare);
    return this.sorted;
  }
}

/**
 * isAge reports whether a column contains ages. The page computes ages itself, so that they stay
 * current.
 */
export const isAge = (column: Column) => column.name === 'Age' || column.name === 'Created At';

/** format returns a cell as text. */
export function format(cell: Row['cells'][number] | undefined): string {
  return cell === null || cell === undefined || cell === '' ? '-' : String(cell);
}

const collator = new Intl.Collator('en', { numeric: true });

/** comparison returns a total order, so that the same rows always have the same order. */
function comparison(columns: Column[], { index, descending }: Sort): Compare {
  const column = columns[index];
  const sign = descending ? -1 : 1;
  const byCell = column && isAge(column) ? byCreation : (a: Row, b: Row) => compareCells(a.cells[index], b.cells[index]);
  return (a, b) =>
    sign * byCell(a, b) || collator.compare(a.metadata.name, b.metadata.name) || collator.compare(a.metadata.namespace ?? '', b.metadata.namespace ?? '');
}

function compareCells(x: Row['cells'][number] | undefined, y: Row['cells'][number] | undefined): number {
  return typeof x === 'number' && typeof y === 'number' ? x - y : collator.compare(format(x), format(y));
}

/** merge merges two sorted lists. The second list is short. */
function merge(long: Row[], short: Row[], compare: Compare): Row[] {
  const merged: Row[] = [];
  let start = 0;
  for (const row of short) {
    const end = firstAfter(long, row, start, compare);
    for (; start < end; start++) {
      merged.push(long[start] as Row);
    }
    merged.push(row);
  }
  for (; start < long.length; start++) {
    merged.push(long[start] as Row);
  }
  return merged;
}

/**
 * firstAfter returns the index of the first row in a sorted list, from start, that follows the
 * given row.
 */
function firstAfter(rows: Row[], row: Row, start: number, compare: Compare): number {
  let [low, high] = [start, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(rows[middle] as Row, row) > 0) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
