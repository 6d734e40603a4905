import { useMemo } from 'react';
import { Link } from 'react-router';
import { place, type Line, type Shape } from './layout';

/** Node is a Graph's box. It is a link if it has a path. */
export interface Node extends Shape {
  kind: string;
  name: string;
  detail?: string;
  state?: 'success' | 'warning' | 'danger';
  path?: string;
  /** description describes the node's lines for screen readers. */
  description: string;
}

/**
 * Edge is a Graph's line. It leads from left to right, unless its target is in an earlier column.
 */
export interface Edge extends Line {
  label?: string;
}

const width = 184;
const height = 58;
const minGap = 48;
/** captionCharacter is the mean width of a character in a line's caption, in pixels. */
const captionCharacter = 7;
const gapY = 18;
const margin = 4;
const padding = 12;
/** minScale is the smallest scale at which the text is legible. Below it, the graph scrolls. */
const minScale = 0.75;

/**
 * Graph draws nodes in columns, with lines between them. Screen readers read the nodes as a list of
 * links.
 */
export function Graph({ label, nodes, edges }: { label: string; nodes: Node[]; edges: Edge[] }) {
  const placed = useMemo(() => place(nodes, edges), [nodes, edges]);
  const gapX = Math.max(minGap, ...edges.map(({ label: caption = '' }) => captionCharacter * caption.length + 2 * padding));
  const columns = [...new Set(placed.map(({ column }) => column))].sort((a, b) => a - b);
  const at = new Map(placed.map((node) => [node.id, { x: margin + columns.indexOf(node.column) * (width + gapX), y: margin + node.row * (height + gapY) }]));
  const rows = Math.max(1, ...placed.map(({ row }) => row + 1));
  const [w, h] = [columns.length * (width + gapX) - gapX + 2 * margin, rows * (height + gapY) - gapY + 2 * margin];
  return (
    <div className="console-graph" tabIndex={0} role="region" aria-label={label}>
      <svg style={{ maxWidth: w, minWidth: minScale * w }} viewBox={`0 0 ${w} ${h}`} role="group" aria-label={label}>
        {edges.map(({ from, to, label: caption }) => {
          const [start, end] = [at.get(from), at.get(to)];
          return start && end && <Curve key={`${from} ${to} ${caption}`} start={start} end={end} caption={caption} />;
        })}
        {placed.map((node) => {
          const { x, y } = at.get(node.id) ?? { x: 0, y: 0 };
          return <Box key={node.id} node={node} x={x} y={y} />;
        })}
      </svg>
    </div>
  );
}

interface Point {
  x: number;
  y: number;
}

function Curve({ start, end, caption }: { start: Point; end: Point; caption?: string }) {
  const back = end.x <= start.x;
  const [x1, x2] = back ? [start.x, end.x + width] : [start.x + width, end.x];
  const [y1, y2] = [start.y + height / 2, end.y + height / 2];
  const bend = (x2 - x1) / 2;
  return (
    <g aria-hidden="true" className={back ? 'back' : undefined}>
      <path d={`M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`} />
      {caption && (
        <text x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 4} className="caption">
          {caption}
        </text>
      )}
    </g>
  );
}

function Box({ node, x, y }: { node: Node; x: number; y: number }) {
  // The accessible name begins with the text in the box, for users of speech input.
  const name = [node.kind, node.name, node.detail].filter(Boolean).join(' ') + `. ${node.description}`;
  const content = (
    <>
      <title>{name}</title>
      <rect x={x} y={y} width={width} height={height} rx="6" className={node.state} />
      <svg x={x} y={y} width={width - padding} height={height}>
        <text x={padding} y="20" className="kind">
          {node.kind}{' '}
        </text>
        <text x={padding} y="40">
          {node.name}{' '}
        </text>
        {node.detail && (
          <text x={width - padding} y="20" className="detail">
            {node.detail}
          </text>
        )}
      </svg>
    </>
  );
  return node.path === undefined ? (
    <g role="img" aria-label={name}>
      {content}
    </g>
  ) : (
    <Link to={node.path} aria-label={name}>
      {content}
    </Link>
  );
}
