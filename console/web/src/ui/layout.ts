/** Shape is a node of a drawing. Columns are numbered from left to right. */
export interface Shape {
  id: string;
  column: number;
}

/** Line connects two nodes. */
export interface Line {
  from: string;
  to: string;
}

/** Placed is a node with its row. */
export type Placed<T extends Shape> = T & { row: number };

const sweeps = 4;

/**
 * place assigns rows to the nodes of each column, so that few lines cross. In each sweep, it sorts
 * a column by the mean row of each node's neighbors. Nodes with the same mean keep the order of the
 * input.
 */
export function place<T extends Shape>(shapes: T[], lines: Line[]): Placed<T>[] {
  const neighbors = new Map<string, string[]>();
  for (const { from, to } of lines) {
    neighbors.set(from, [...(neighbors.get(from) ?? []), to]);
    neighbors.set(to, [...(neighbors.get(to) ?? []), from]);
  }
  const columns = [...new Set(shapes.map(({ column }) => column))].sort((a, b) => a - b).map((column) => shapes.filter((shape) => shape.column === column));
  const rows = new Map<string, number>();
  columns.forEach((column) => column.forEach(({ id }, row) => rows.set(id, row)));
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (const column of sweep % 2 === 0 ? columns : [...columns].reverse()) {
      const weight = new Map(column.map(({ id }) => [id, mean((neighbors.get(id) ?? []).map((other) => rows.get(other) ?? 0)) ?? rows.get(id) ?? 0]));
      column.sort((a, b) => (weight.get(a.id) ?? 0) - (weight.get(b.id) ?? 0));
      column.forEach(({ id }, row) => rows.set(id, row));
    }
  }
  return columns.flatMap((column) => column.map((shape, row) => ({ ...shape, row })));
}

function mean(values: number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}
