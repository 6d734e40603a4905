import { EmptyState } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import type { ReactNode } from 'react';

/** DataColumn is a DataTable's column. */
export interface DataColumn<T> {
  title: string;
  cell: (item: T) => ReactNode;
  /** mono uses a monospace font, for identifiers such as image names. */
  mono?: boolean;
}

interface DataTableProps<T> {
  label: string;
  columns: DataColumn<T>[];
  items: T[];
  keyOf: (item: T) => string;
  /** empty is the text that is shown if there are no items. */
  empty: string;
}

/**
 * shortLength is the maximum length, in characters, of text that fits into a cell on a small
 * screen.
 */
const shortLength = 16;

/** DataCell is a cell. It can break long text anywhere, and never breaks short text. */
function DataCell({ title, content, mono }: { title: string; content: ReactNode; mono?: boolean }) {
  const isShort = typeof content === 'string' && content.length <= shortLength;
  return (
    <Td dataLabel={title} modifier={isShort ? 'nowrap' : 'breakWord'} className={mono ? 'console-mono' : undefined}>
      {content}
    </Td>
  );
}

/** DataTable shows a few items. For thousands of items, use a ResourceTable. */
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
              <DataCell key={title} title={title} content={cell(item)} mono={mono} />
            ))}
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
