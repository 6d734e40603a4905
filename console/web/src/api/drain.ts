import { ApiError, post } from './http';
import type { KubeObject } from './types';

/** PodOfNode is a pod, with the fields that draining reads. */
export interface PodOfNode extends KubeObject {
  spec: { volumes?: { emptyDir?: unknown }[]; containers?: { resources?: { requests?: Record<string, string> } }[] };
  status?: { phase?: string };
}

/** Plan describes the effect of a drain on the pods of a node. */
export interface Plan {
  evicted: PodOfNode[];
  /** skipped are pods of daemon sets and static pods, which are kept. */
  skipped: PodOfNode[];
  /** localData are the evicted pods whose emptyDir volumes are lost. */
  localData: PodOfNode[];
  /** unmanaged are the evicted pods that no controller recreates. */
  unmanaged: PodOfNode[];
}

const mirrorKey = 'kubernetes.io/config.mirror';

const hasEnded = (pod: PodOfNode) => ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');

/** planOf sorts the pods of a node, with the rules of oc adm drain. */
export function planOf(pods: PodOfNode[]): Plan {
  const controllerOf = (pod: PodOfNode) => pod.metadata.ownerReferences?.find((owner) => owner.controller)?.kind;
  const stays = (pod: PodOfNode) => pod.metadata.annotations?.[mirrorKey] !== undefined || (controllerOf(pod) === 'DaemonSet' && !hasEnded(pod));
  const evicted = pods.filter((pod) => !stays(pod));
  const running = evicted.filter((pod) => !hasEnded(pod));
  return {
    evicted,
    skipped: pods.filter(stays),
    localData: running.filter((pod) => pod.spec.volumes?.some((volume) => volume.emptyDir !== undefined)),
    unmanaged: running.filter((pod) => controllerOf(pod) === undefined),
  };
}

/** EvictionState is the progress of the eviction of a pod. */
export interface EvictionState {
  state: 'waiting' | 'evicted' | 'gone' | 'budget' | 'failed';
  message?: string;
}

/** retryInterval is the time between two requests for an eviction, as in oc adm drain. */
const retryInterval = 5_000;

/** evict evicts a pod, and repeats the request while a disruption budget rejects it. */
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
        report({ state: 'gone' }); // another pod has the name now, or no pod has it
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

/** pause waits, at most until a signal is aborted. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
