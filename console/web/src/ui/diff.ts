/** Change is a line of a comparison: unchanged, added or removed. */
export interface Change {
  kind: ' ' | '+' | '-';
  line: string;
}

/**
 * maxLines is the maximum number of lines in each of the compared texts. The comparison time is
 * proportional to the product of the texts' lengths.
 */
const maxLines = 3000;

/**
 * diff returns the changes that turn the lines of one text into the lines of another, based on
 * their longest common subsequence.
 */
export function diff(before: string, after: string): Change[] {
  const [a, b] = [before, after].map((text) => text.split('\n').slice(0, maxLines)) as [string[], string[]];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) {
    start++;
  }
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) {
    end++;
  }
  const [x, y] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const kept = (lines: string[]): Change[] => lines.map((line) => ({ kind: ' ', line }));
  return [...kept(a.slice(0, start)), ...middle(x, y), ...kept(a.slice(a.length - end))];
}

function middle(a: string[], b: string[]): Change[] {
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const changes: Change[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      changes.push({ kind: ' ', line: a[i] ?? '' });
      i++;
      j++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      changes.push({ kind: '-', line: a[i++] ?? '' });
    } else {
      changes.push({ kind: '+', line: b[j++] ?? '' });
    }
  }
  return changes;
}

/**
 * context returns the changes with the lines around them. It replaces each run of omitted lines
 * with null.
 */
export function context(changes: Change[], lines = 3): (Change | null)[] {
  const near = changes.map((_, index) => changes.slice(Math.max(0, index - lines), index + lines + 1).some(({ kind }) => kind !== ' '));
  return changes.flatMap((change, index) => (near[index] ? [change] : near[index - 1] ? [null] : []));
}
