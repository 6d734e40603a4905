import { Tbody } from '@patternfly/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import type { ReactNode, Ref } from 'react';

const rowHeight = 41;
const overscan = 10;

/** RowRef measures a row. The row must have the attribute data-index. */
export type RowRef = Ref<HTMLTableRowElement>;

interface VirtualRowsProps {
  count: number;
  /** width is the number of columns. */
  width: number;
  /** scroll is the element that scrolls. */
  scroll: HTMLElement | null;
  /** row renders the row at an index. */
  row: (index: number, measure: RowRef) => ReactNode;
}

/** VirtualRows is the body of a table. The document contains only the visible rows. */
export function VirtualRows({ count, width, scroll, row }: VirtualRowsProps) {
  const virtualizer = useVirtualizer({ count, getScrollElement: () => scroll, estimateSize: () => rowHeight, overscan });
  const items = virtualizer.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtualizer.getTotalSize() - (items[items.length - 1]?.end ?? 0);
  return (
    <Tbody>
      {before > 0 && <Spacer height={before} width={width} />}
      {items.map(({ index }) => row(index, virtualizer.measureElement))}
      {after > 0 && <Spacer height={after} width={width} />}
    </Tbody>
  );
}

/** Spacer takes up the space of the rows that are not in the document. */
function Spacer({ height, width }: { height: number; width: number }) {
  return (
    <tr aria-hidden="true">
      <td colSpan={width} style={{ height, padding: 0 }} />
    </tr>
  );
}
