import type { Metadata } from './types';

type Created = { metadata: Pick<Metadata, 'creationTimestamp'> };

/** byCreation is the order of objects by the time of their creation, newest first. */
export function byCreation(a: Created, b: Created): number {
  const [x, y] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  return x === y ? 0 : x < y ? 1 : -1;
}
