import type { Metadata } from './types';

type Created = { metadata: Pick<Metadata, 'creationTimestamp'> };

/** byCreation compares two objects by their creation time. It sorts the newest object first. */
export function byCreation(a: Created, b: Created): number {
  const [x, y] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return x === y ? 0 : x < y ? 1 : -1;
}
