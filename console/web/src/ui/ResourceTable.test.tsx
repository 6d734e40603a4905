import type { TableProps } from '@patternfly/react-table';
import { cleanup, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import type { Resource } from '../api/discovery';
import type { Column, Row } from '../api/types';
import * as links from '../app/links';
import { ResourceTable } from './ResourceTable';

const renderedTables = vi.hoisted(() => vi.fn());

vi.mock('@patternfly/react-table', async (importOriginal) => {
  const original = await importOriginal<typeof import('@patternfly/react-table')>();
  const Table = (props: TableProps) => {
    renderedTables();
    return <original.Table {...props} />;
  };
  return { ...original, Table };
});

afterEach(cleanup);

const resource = { id: 'pods', group: '', version: 'v1', name: 'pods', kind: 'Pod', namespaced: true } as unknown as Resource;
const columns: Column[] = ['Name', 'Status'].map((name) => ({ name, type: 'string', priority: 0 }) as Column);

function rowOf(number: number, status: string): Row {
  const name = `pod-${String(number).padStart(4, '0')}`;
  return { cells: [name, status], metadata: { name, namespace: 'shop', uid: name, resourceVersion: status, creationTimestamp: '2020-01-01T00:00:00Z' } } as Row;
}

const remove = vi.fn();
const table = (rows: Row[]) => (
  <MemoryRouter>
    <ResourceTable label="Pods" columns={columns} rows={rows} resource={resource} withProject={false} remove={remove} />
  </MemoryRouter>
);

it('renders only the row that changes, of those in view', () => {
  // jsdom has no layout, so set the heights of the table and of each row.
  vi.spyOn(Element.prototype, 'clientHeight', 'get').mockReturnValue(410);
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(41);
  const rendered = vi.spyOn(links, 'linkTo');
  const rows = Array.from({ length: 5000 }, (_, number) => rowOf(number, 'Running'));
  const { rerender } = render(table(rows));
  const inView = screen.getAllByRole('link').length;
  expect(inView).toBeGreaterThan(5);
  expect(inView).toBeLessThan(100);
  rendered.mockClear();
  renderedTables.mockClear();
  rerender(table(rows.map((row, number) => (number === 3 ? rowOf(3, 'Failed') : row))));
  expect(screen.getByText('Failed').closest('tr')?.textContent).toContain('pod-0003');
  expect(rendered.mock.calls.map(([, , name]) => name)).toEqual(['pod-0003']);
  rendered.mockClear();
  rerender(table(rows.map((row, number) => (number === 3 || number === 4000 ? rowOf(number, 'Failed') : row))));
  expect(rendered.mock.calls.map(([, , name]) => name)).toEqual(['pod-0003']);
  expect(renderedTables).not.toHaveBeenCalled(); // rendering the table would render all cells again
});
