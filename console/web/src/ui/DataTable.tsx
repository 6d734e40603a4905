import { EmptyState } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import type { ReactNode } from 'react';

/** DataColumn is a column of a DataTable. */
export interface DataColumn<T> {
  title: string;
  cell: (item: T) => ReactNode;
  /** mono shows identifiers, such as names of images. */
  mono?: boolean;
}

interface DataTableProps<T> {
  label: string;
  columns: DataColumn<T>[];
  items: T[];
  keyOf: (item: T) => string;
  /** empty is the text that explains why there are no items. */
  empty: string;
}

/** DataTable shows a few items. A ResourceTable shows thousands. */
export function DataTable<T>({ label, columns, items, keyOf, empty }: DataTableProps<T>) {
  if (items.length === 0) {
    return <EmptyState headingLevel="h3" variant="xs" titleText={empty} />;
  }
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          {columns.map(({ title }) => (
            <Th key={title} modifier="wrap">
              {title}
            </Th>
          ))}
        </Tr>
      </Thead>
      <Tbody>
        {items.map((item) => (
          <Tr key={keyOf(item)}>
            {columns.map(({ title, cell, mono }) => (
              <Td key={title} dataLabel={title} modifier="breakWord" className={mono ? 'console-mono' : undefined}>
                {cell(item)}
              </Td>
            ))}
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
