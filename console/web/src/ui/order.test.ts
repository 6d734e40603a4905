import { describe, expect, it, vi } from 'vitest';
import type { Column, Row } from '../api/types';
import { Order } from './order';

const columns = ['Name', 'Restarts', 'Age'].map((name) => ({ name, priority: 0 }) as Column);

function row(name: string, restarts: number | string = 0, second = 0, namespace = 'a'): Row {
  const creationTimestamp = `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
  return { cells: [name, restarts, ''], metadata: { name, namespace, uid: `${namespace}/${name}`, creationTimestamp } } as Row;
}

const names = (rows: Row[]) => rows.map(({ metadata }) => metadata.name);
const order = (index: number, descending = false) => new Order(columns, { index, descending });

describe('Order', () => {
  it('sorts numbers in texts by value', () => {
    expect(names(order(0).of([row('pod-10'), row('pod-9'), row('a')]))).toEqual(['a', 'pod-9', 'pod-10']);
  });

  it('sorts numbers by value and equal cells by name', () => {
    const rows = [row('c', 10), row('b', 9), row('a', 10)];
    expect(names(order(1).of(rows))).toEqual(['b', 'a', 'c']);
    expect(names(order(1, true).of(rows))).toEqual(['a', 'c', 'b']);
  });

  it('sorts ages by time', () => {
    const rows = [row('old', 0, 1), row('new', 0, 30)];
    expect(names(order(2).of(rows))).toEqual(['new', 'old']);
    expect(names(order(2, true).of(rows))).toEqual(['old', 'new']);
  });

  it('moves changed rows, adds new rows and drops removed ones', () => {
    const sorted = order(1);
    const [a, b, c, d] = [row('a', 1), row('b', 2), row('c', 3), row('d', 4)];
    sorted.of([a, b, c, d]);
    expect(names(sorted.of([row('a', 5), b, d, row('e', 3)]))).toEqual(['b', 'e', 'd', 'a']);
    expect(sorted.of([])).toEqual([]);
  });

  it('returns the same order as sorting all rows', () => {
    const sorted = order(1);
    let rows = Array.from({ length: 200 }, (_, i) => row(`pod-${i}`, i % 7, 0, i % 2 ? 'a' : 'b'));
    for (let step = 1; step < 50; step++) {
      rows = rows.filter((_, i) => i % 61 !== step % 61).map((r, i) => (i % 13 === step % 13 ? { ...r, cells: [r.cells[0] ?? '', (i * step) % 11, ''] } : r));
      rows.push(row(`pod-${step}`, step % 5, 0, 'c'));
      expect(sorted.of(rows)).toEqual(order(1).of(rows));
    }
  });

  it('compares only changed rows', () => {
    const compare = vi.fn(new Intl.Collator('en', { numeric: true }).compare);
    vi.spyOn(Intl.Collator.prototype, 'compare', 'get').mockReturnValue(compare);
    const rows = Array.from({ length: 5000 }, (_, i) => row(`pod-${i}`));
    const sorted = order(0);
    sorted.of(rows);
    expect(compare).toHaveBeenCalled();
    compare.mockClear();
    rows[2500] = row('pod-2500', 1);
    expect(sorted.of(rows)[2500]).toBe(rows[2500]);
    expect(compare.mock.calls.length).toBeLessThan(50);
  });
});
