import { ApiError, post } from './http';
import { controllerOf, isOwned } from './owners';
import type { KubeObject } from './types';

/** PodOfNode contains the fields of a pod that a drain reads. */
export interface PodOfNode extends KubeObject {
  spec: { volumes?: { emptyDir?: unknown }[]; containers?: { resources?: { requests?: Record<string, string> } }[] };
  status?: { phase?: string };
}

/** Plan describes the effect of a drain on a node's pods. */
export interface Plan {
  evicted: PodOfNode[];
  /** skipped contains the pods that stay on the node: pods of daemon sets, and static pods. */
  skipped: PodOfNode[];
  /** localData contains the evicted pods whose emptyDir volumes are lost. */
  localData: PodOfNode[];
  /** unmanaged contains the evicted pods that no controller recreates. */
  unmanaged: PodOfNode[];
}

const mirrorKey = 'kubernetes.io/config.mirror';

const hasEnded = (pod: PodOfNode) => ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');

/** planOf plans the drain of a node's pods according to the rules of oc adm drain. */
export function planOf(pods: PodOfNode[]): Plan {
  const stays = (pod: PodOfNode) => pod.metadata.annotations?.[mirrorKey] !== undefined || (controllerOf(pod)?.kind === 'DaemonSet' && !hasEnded(pod));
  const evicted = pods.filter((pod) => !stays(pod));
  const running = evicted.filter((pod) => !hasEnded(pod));
  return {
    evicted,
    skipped: pods.filter(stays),
    localData: running.filter((pod) => pod.spec.volumes?.some((volume) => volume.emptyDir !== undefined)),
    unmanaged: running.filter((pod) => !isOwned(pod)),
  };
}

/** EvictionState is the progress of a pod's eviction. */
export interface EvictionState {
  state: 'waiting' | 'evicted' | 'gone' | 'budget' | 'failed';
  message?: string;
}

/** retryInterval is the time between two eviction requests, as in oc adm drain. */
const retryInterval = 5_000;

/** evict evicts a pod. While a disruption budget rejects the request, evict repeats it. */
export async function evict(pod: PodOfNode, report: (state: EvictionState) => void, signal: AbortSignal): Promise<void> {
  const { name, namespace = '', uid } = pod.metadata;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`;
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions: { preconditions: { uid } } };
  while (!signal.aborted) {
    try {
      await post(path, body, { repeatable: true, signal });
      report({ state: 'evicted' });
      return;
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 404 || status === 409) {
        report({ state: 'gone' }); // the pod no longer exists, or another pod has its name
        return;
      }
      if (status !== 429) {
        report({ state: 'failed', message: (error as Error).message });
        return;
      }
      report({ state: 'budget', message: (error as Error).message });
    }
    await pause(retryInterval, signal);
  }
}

/** pause waits for a duration or until a signal is aborted. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
