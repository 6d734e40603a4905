import { Table, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { createContext, memo, useContext, useMemo, useState } from 'react';
import { Link } from 'react-router';
import { titleOf } from '../api/columns';
import type { Resource } from '../api/discovery';
import type { Column, Row } from '../api/types';
import { linkTo } from '../app/links';
import { text } from '../text/en';
import { Age } from './Age';
import { format, isAge, Order, type Sort } from './order';
import { RowActions } from './RowActions';
import { VirtualRows, type RowRef } from './VirtualRows';

/**
 * RowProps contains the properties that all rows share. A row renders again only if one of them
 * changes.
 */
interface RowProps {
  resource: Resource;
  /** withProject adds a column with the project. */
  withProject: boolean;
  /** remove requests confirmation before it deletes a row's object. */
  remove?: (row: Row) => void;
}

interface ResourceTableProps extends RowProps {
  label: string;
  columns: Column[];
  rows: Row[];
}

/** ShownColumn is a column with its index in each row's cells. */
interface ShownColumn {
  column: Column;
  index: number;
}

/**
 * SortedRows contains a table's rows in order. They are in a context, because PatternFly renders
 * each cell again when it renders a table.
 */
const SortedRows = createContext<Row[]>([]);

/** ResourceTable shows rows with the server's columns. The document contains only visible rows. */
export function ResourceTable({ label, columns, rows, resource, withProject, remove }: ResourceTableProps) {
  const shown = useMemo(() => columns.map((column, index): ShownColumn => ({ column, index })).filter(({ column }) => column.priority === 0), [columns]);
  const [sort, setSort] = useState<Sort>({ index: 0, descending: false });
  const order = useMemo(() => new Order(columns, sort), [columns, sort]);
  const sorted = useMemo(() => order.of(rows), [order, rows]);
  const [scroll, setScroll] = useState<HTMLDivElement | null>(null);
  const count = sorted.length;
  const table = useMemo(
    () => (
      <Table aria-label={label} aria-rowcount={count + 1} variant="compact" isStickyHeader>
        <Head shown={shown} sort={sort} setSort={setSort} withProject={withProject} hasActions={remove !== undefined} />
        <Body scroll={scroll} shown={shown} resource={resource} withProject={withProject} remove={remove} />
      </Table>
    ),
    [label, count, scroll, shown, sort, resource, withProject, remove],
  );
  return (
    <div className="console-scroll" ref={setScroll} tabIndex={0} role="region" aria-label={label}>
      <SortedRows value={sorted}>{table}</SortedRows>
    </div>
  );
}

interface HeadProps {
  shown: ShownColumn[];
  sort: Sort;
  setSort: (sort: Sort) => void;
  withProject: boolean;
  hasActions: boolean;
}

/** Head is the row with the column names. */
function Head({ shown, sort, setSort, withProject, hasActions }: HeadProps) {
  return (
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
            {titleOf(column.name)}
          </Th>
        ))}
        {withProject && <Th>{text.list.namespace}</Th>}
        {hasActions && <Th screenReaderText={text.actions} />}
      </Tr>
    </Thead>
  );
}

interface BodyProps extends RowProps {
  /** scroll is the element that scrolls. */
  scroll: HTMLElement | null;
  shown: ShownColumn[];
}

/** Body contains the visible rows. */
function Body({ scroll, shown, ...common }: BodyProps) {
  const rows = useContext(SortedRows);
  const width = shown.length + (common.withProject ? 1 : 0) + (common.remove ? 1 : 0);
  return (
    <VirtualRows
      count={rows.length}
      width={width}
      scroll={scroll}
      row={(index, measure) => {
        const row = rows[index] as Row;
        return <TableRow key={row.metadata.uid} row={row} index={index} shown={shown} measure={measure} {...common} />;
      }}
    />
  );
}

interface TableRowProps extends RowProps {
  row: Row;
  /** index is the row's position in the table. */
  index: number;
  shown: ShownColumn[];
  measure: RowRef;
}

/**
 * TableRow is a row. It does not render again when another object changes, because rows are
 * immutable.
 */
const TableRow = memo(function TableRow({ resource, row, index, shown, withProject, remove, measure }: TableRowProps) {
  const { name, namespace, creationTimestamp } = row.metadata;
  return (
    <Tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      {shown.map(({ column, index: cell }, position) => (
        <Td key={column.name} dataLabel={titleOf(column.name)} modifier="breakWord">
          {position === 0 ? (
            <Link to={linkTo(resource, namespace, name)}>{name || format(row.cells[cell])}</Link>
          ) : isAge(column) ? (
            <Age of={creationTimestamp} />
          ) : (
            format(row.cells[cell])
          )}
        </Td>
      ))}
      {withProject && <Td dataLabel={text.list.namespace}>{namespace ?? '-'}</Td>}
      {remove && (
        <Td isActionCell>
          <RowActions name={name} items={[{ title: text.delete, onClick: () => remove(row) }]} />
        </Td>
      )}
    </Tr>
  );
});
