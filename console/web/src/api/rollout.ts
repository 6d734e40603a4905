import { merge } from './http';
import type { LooseObject } from './types';
import { desiredOf, type Workload } from './workloads';

/**
 * Rollout is a rollout that has not succeeded. It contains the number of updated pods, or the
 * reason for the failure.
 */
export interface Rollout {
  done: number;
  total: number;
  failure?: string;
}

interface Status {
  observedGeneration?: number;
  updatedReplicas?: number;
  updatedNumberScheduled?: number;
  currentRevision?: string;
  updateRevision?: string;
}

/** succeeded contains the reasons that the Progressing condition has after a successful rollout. */
const succeeded = ['NewReplicaSetAvailable', 'FoundNewReplicaSet', 'NewReplicationControllerAvailable'];

/**
 * running contains the reasons that the Progressing condition has while a configuration's
 * deployment is in progress.
 */
const running = ['ReplicationControllerUpdated', 'NewReplicationControllerCreated', ''];

/**
 * rolloutOf returns a workload's rollout. It returns undefined if there is no rollout, or if the
 * rollout has succeeded or is paused.
 */
export function rolloutOf(workload: Workload): Rollout | undefined {
  const total = desiredOf(workload);
  const status: Status = workload.status ?? {};
  const isObserved = (status.observedGeneration ?? 0) >= (workload.metadata.generation ?? 0);
  const done = isObserved ? Math.min(total, status.updatedReplicas ?? status.updatedNumberScheduled ?? 0) : 0;
  if (workload.spec.paused || total === 0) {
    return undefined;
  }
  switch (workload.kind) {
    case 'StatefulSet':
      return status.updateRevision === status.currentRevision || done === total ? undefined : { done, total };
    case 'DaemonSet':
      return done === total ? undefined : { done, total };
  }
  const progress = workload.status?.conditions?.find(({ type }) => type === 'Progressing');
  if (!progress || (isObserved && succeeded.includes(progress.reason ?? ''))) {
    return undefined;
  }
  return progress.status === 'False' && isObserved ? { done, total, failure: progress.message ?? progress.reason ?? '' } : { done, total };
}

/**
 * isDeploying reports whether a configuration has a deployment in progress, which users can cancel.
 */
export function isDeploying(config: LooseObject): boolean {
  const { spec, status } = config as unknown as Workload;
  const progress = status?.conditions?.find(({ type }) => type === 'Progressing');
  return !spec.paused && (status?.latestVersion ?? 0) > 0 && progress !== undefined && progress.status !== 'False' && running.includes(progress.reason ?? '');
}

/** cancel cancels a configuration's deployment in progress. */
export function cancel(config: LooseObject): Promise<unknown> {
  const { name, namespace = '' } = config.metadata;
  const deployment = `${name}-${(config as unknown as Workload).status?.latestVersion}`;
  const annotations = { 'openshift.io/deployment.cancelled': 'true', 'openshift.io/deployment.status-reason': 'cancelled by the user' };
  return merge(`/api/v1/namespaces/${encodeURIComponent(namespace)}/replicationcontrollers/${encodeURIComponent(deployment)}`, { metadata: { annotations } });
}
