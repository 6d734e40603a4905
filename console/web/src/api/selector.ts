/**
 * LabelSelector selects objects by labels and by expressions. An empty selector selects all
 * objects.
 */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** selectsLabels reports whether a selector matches labels. */
export function selectsLabels(selector: LabelSelector | undefined, labels: Record<string, string>): boolean {
  const byLabel = Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return (
    byLabel &&
    (selector?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
      const value = labels[key];
      switch (operator) {
        case 'In':
          return value !== undefined && values.includes(value);
        case 'NotIn':
          return value === undefined || !values.includes(value);
        case 'Exists':
          return value !== undefined;
        case 'DoesNotExist':
          return value === undefined;
        default:
          return false;
      }
    })
  );
}

/** requirementsOf returns the labels that a selector requires, as key=value. */
const requirementsOf = (labels: Record<string, string> = {}) => Object.entries(labels).map(([key, value]) => `${key}=${value}`);

/**
 * selectorIndex returns a function that finds the entries whose selectors match labels, in the
 * entries' order. The function evaluates only the selectors that require one of the labels, and the
 * selectors that require no label.
 */
export function selectorIndex<T extends { selector: LabelSelector }>(entries: T[]): (labels: Record<string, string>) => T[] {
  const counts = new Map<string, number>();
  for (const requirement of entries.flatMap(({ selector }) => requirementsOf(selector.matchLabels))) {
    counts.set(requirement, (counts.get(requirement) ?? 0) + 1);
  }
  // Many selectors can require the same label, such as the name of an application. Each entry is
  // therefore stored at the label that the fewest selectors require.
  const positions = new Map<string, number[]>();
  for (const [position, { selector }] of entries.entries()) {
    const [rarest = ''] = requirementsOf(selector.matchLabels).sort((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0));
    positions.set(rarest, [...(positions.get(rarest) ?? []), position]);
  }
  return (labels) =>
    ['', ...requirementsOf(labels)]
      .flatMap((requirement) => positions.get(requirement) ?? [])
      .sort((a, b) => a - b)
      .map((position) => entries[position] as T)
      .filter(({ selector }) => selectsLabels(selector, labels));
}
