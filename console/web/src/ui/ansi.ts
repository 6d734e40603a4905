/** Span is a part of a line in one color. */
export interface Span {
  text: string;
  /** color is a terminal color from 0 to 7. It is undefined for the default color. */
  color?: number;
  bold?: boolean;
}

// A control sequence (ECMA-48), an operating system command up to its end, or another escape
// sequence.
const escape = /\x1b(?:\[([0-9;?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|.)?/g;
const control = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/**
 * parseLine parses the colors in a log line. It removes all other escape sequences, control
 * characters, and characters that change the text direction.
 */
export function parseLine(line: string): Span[] {
  const spans: Span[] = [];
  let style: Omit<Span, 'text'> = {};
  let position = 0;
  const push = (raw: string) => {
    const clean = raw.replace(control, '');
    if (clean !== '') {
      spans.push({ text: clean, ...style });
    }
  };
  // A carriage return starts the line again. Only the text after the last carriage return is
  // visible.
  const visible = line.replace(/\r+$/, '').split('\r').pop() ?? '';
  for (const match of visible.matchAll(escape)) {
    push(visible.slice(position, match.index));
    position = match.index + match[0].length;
    if (match[2] === 'm') {
      style = restyle(style, match[1] ?? '');
    }
  }
  push(visible.slice(position));
  return spans;
}

function restyle(style: Omit<Span, 'text'>, parameters: string): Omit<Span, 'text'> {
  let next = { ...style };
  for (const code of parameters.split(';').map(Number)) {
    if (code === 0) {
      next = {};
    } else if (code === 1) {
      next.bold = true;
    } else if (code === 22) {
      next.bold = undefined;
    } else if (code === 39) {
      next.color = undefined;
    } else if (code >= 30 && code <= 37) {
      next.color = code - 30;
    } else if (code >= 90 && code <= 97) {
      next.color = code - 90;
    }
  }
  return next;
}
