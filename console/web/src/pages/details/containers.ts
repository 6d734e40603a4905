import type { LooseObject } from '../../api/types';

interface PodSpec {
  containers?: { name: string }[];
  initContainers?: { name: string }[];
}

interface PodStatus {
  containerStatuses?: { name: string; state?: { running?: unknown; terminated?: unknown } }[];
  initContainerStatuses?: { name: string; state?: { running?: unknown; terminated?: unknown } }[];
}

/** containersOf returns the names of a pod's containers. Init and ephemeral containers are last. */
export function containersOf(object: LooseObject): string[] {
  if (object.kind !== 'Pod') {
    return [];
  }
  const spec = object.spec as PodSpec;
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])].map((container) => container.name);
}

/** isRunning reports whether a pod's container has started. */
export function isRunning(object: LooseObject, container: string | undefined): boolean {
  const status = object.status as PodStatus | undefined;
  const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  const state = all.find((c) => c.name === container)?.state;
  return state?.running !== undefined || state?.terminated !== undefined;
}
