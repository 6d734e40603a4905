import { Table, Tbody, Td, Th, Thead, Tr, type IAction } from '@patternfly/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import { Link } from 'react-router';
import type { Column, Row } from '../api/types';
import { text } from '../text/en';
import { Age } from './Age';
import { format, isAge, Order, type Sort } from './order';
import { RowActions } from './RowActions';

interface ResourceTableProps {
  label: string;
  columns: Column[];
  rows: Row[];
  /** namespaced adds the column of the project. */
  withProject: boolean;
  linkOf: (row: Row) => string;
  actionsOf?: (row: Row) => IAction[];
}

const rowHeight = 41;
const overscan = 20;

/** ResourceTable shows rows with the server's columns. Only rows in view are in the document. */
export function ResourceTable({ label, columns, rows, withProject, linkOf, actionsOf }: ResourceTableProps) {
  const shown = columns.map((column, index) => ({ column, index })).filter(({ column }) => column.priority === 0);
  const [sort, setSort] = useState<Sort>({ index: 0, descending: false });
  const order = useMemo(() => new Order(columns, sort), [columns, sort]);
  const sorted = useMemo(() => order.of(rows), [order, rows]);
  const scroll = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({ count: sorted.length, getScrollElement: () => scroll.current, estimateSize: () => rowHeight, overscan });
  const items = virtualizer.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtualizer.getTotalSize() - (items[items.length - 1]?.end ?? 0);
  const width = shown.length + (withProject ? 1 : 0) + (actionsOf ? 1 : 0);
  return (
    <div className="console-scroll" ref={scroll} tabIndex={0} role="region" aria-label={label}>
      <Table aria-label={label} aria-rowcount={sorted.length + 1} variant="compact" isStickyHeader>
        <Thead>
          <Tr>
            {shown.map(({ column, index }, position) => (
              <Th
                key={column.name}
                sort={{
                  columnIndex: position,
                  sortBy: { index: shown.findIndex((s) => s.index === sort.index), direction: sort.descending ? 'desc' : 'asc' },
                  onSort: (_, __, direction) => setSort({ index, descending: direction === 'desc' }),
                }}
              >
                {column.name}
              </Th>
            ))}
            {withProject && <Th>{text.list.namespace}</Th>}
            {actionsOf && <Th screenReaderText={text.actions} />}
          </Tr>
        </Thead>
        <Tbody>
          {before > 0 && <Spacer height={before} width={width} />}
          {items.map((item) => {
            const row = sorted[item.index] as Row;
            return (
              <Tr key={row.metadata.uid} ref={virtualizer.measureElement} data-index={item.index} aria-rowindex={item.index + 2}>
                {shown.map(({ column, index }, position) => (
                  <Td key={column.name} dataLabel={column.name} modifier="breakWord">
                    {position === 0 ? (
                      <Link to={linkOf(row)}>{row.metadata.name || format(row.cells[index])}</Link>
                    ) : isAge(column) ? (
                      <Age of={row.metadata.creationTimestamp} />
                    ) : (
                      format(row.cells[index])
                    )}
                  </Td>
                ))}
                {withProject && <Td dataLabel={text.list.namespace}>{row.metadata.namespace ?? '-'}</Td>}
                {actionsOf && (
                  <Td isActionCell>
                    <RowActions name={row.metadata.name} items={actionsOf(row)} />
                  </Td>
                )}
              </Tr>
            );
          })}
          {after > 0 && <Spacer height={after} width={width} />}
        </Tbody>
      </Table>
    </div>
  );
}

/** Spacer represents rows that are not in the document. */
function Spacer({ height, width }: { height: number; width: number }) {
  return (
    <tr aria-hidden="true">
      <td colSpan={width} style={{ height, padding: 0 }} />
    </tr>
  );
}
