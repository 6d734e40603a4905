/** Part is a segment of a donut: a number and a label. */
export interface Part {
  label: string;
  count: number;
  color: string;
}

const radius = 42;
const circumference = 2 * Math.PI * radius;

/** Donut draws counts as segments of a ring, with a total and a caption in its center. */
export function Donut({ parts, total, caption, size = 96 }: { parts: Part[]; total: string | number; caption: string; size?: number }) {
  const shown = parts.filter((part) => part.count > 0);
  const sum = shown.reduce((n, part) => n + part.count, 0);
  const label = `${total} ${caption}` + (shown.length > 0 ? ': ' + shown.map((part) => `${part.count} ${part.label}`).join(', ') : '');
  let offset = 0;
  return (
    <svg className="console-donut" role="img" aria-label={label} width={size} height={size} viewBox="0 0 100 100">
      <title>{label}</title>
      <circle cx="50" cy="50" r={radius} fill="none" strokeWidth="10" stroke="var(--pf-t--global--border--color--default)" />
      {shown.map((part) => {
        const length = (part.count / sum) * circumference;
        const start = offset;
        offset += length;
        return (
          <circle
            key={part.label}
            cx="50"
            cy="50"
            r={radius}
            fill="none"
            strokeWidth="10"
            stroke={part.color}
            strokeDasharray={`${length} ${circumference - length}`}
            strokeDashoffset={-start}
            transform="rotate(-90 50 50)"
          />
        );
      })}
      <text x="50" y="52">
        {total}
      </text>
      <text x="50" y="70" className="caption">
        {caption}
      </text>
    </svg>
  );
}
