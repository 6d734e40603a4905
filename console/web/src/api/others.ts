import { others as t } from '../text/others';
import { isAlone } from './owners';
import type { PodSummary } from './pods';
import type { Condition, LooseObject } from './types';

/** Other is a service instance, or an object that runs pods without a rollout. */
export interface Other {
  resource: string;
  kind: string;
  uid: string;
  name: string;
  /** status describes the object's state. */
  status: string;
  state: 'success' | 'danger' | 'info' | 'none';
}

/** singleIDs contains the resources, in addition to pods, whose objects othersOf returns. */
export const singleIDs = ['jobs.batch', 'cronjobs.batch', 'serviceinstances.servicecatalog.k8s.io'];

/** replicaIDs contains the resources whose objects the overview shows if nothing owns them. */
export const replicaIDs = ['replicationcontrollers', 'replicasets.apps'];

/** othersOf returns a project's bare pods, jobs, cron jobs and service instances, sorted by name. */
export function othersOf(of: (id: string) => LooseObject[], pods: PodSummary[]): Other[] {
  const bare = pods
    .filter((pod) => pod.isBare)
    .map(({ uid, name, status, state }): Other => {
      const color = state === 'failed' ? 'danger' : state === 'ready' || state === 'completed' ? 'success' : 'info';
      return { resource: 'pods', kind: 'Pod', uid, name, status, state: color };
    });
  const singles = singleIDs.flatMap((resource) =>
    of(resource)
      .filter(isAlone)
      .map((object): Other => ({ resource, kind: object.kind, uid: object.metadata.uid, name: object.metadata.name, ...stateOf(object) })),
  );
  return [...bare, ...singles].sort((a, b) => (a.name < b.name ? -1 : 1));
}

interface Job {
  spec?: { completions?: number; schedule?: string; suspend?: boolean };
  status?: { succeeded?: number; conditions?: Condition[]; lastConditionState?: string };
}

/** stateOf describes the state of a job, a cron job or a service instance. */
function stateOf(object: LooseObject): Pick<Other, 'status' | 'state'> {
  const { spec = {}, status = {} } = object as unknown as Job;
  const has = (type: string) => status.conditions?.find((condition) => condition.type === type && condition.status === 'True');
  const failure = has('Failed');
  switch (object.kind) {
    case 'Job':
      if (failure) {
        return { status: [t.failed, failure.reason].filter(Boolean).join(': '), state: 'danger' };
      }
      if (has('Complete')) {
        return { status: t.complete, state: 'success' };
      }
      return spec.suspend ? { status: t.suspended, state: 'none' } : { status: t.completed(status.succeeded ?? 0, spec.completions ?? 1), state: 'info' };
    case 'CronJob':
      return spec.suspend ? { status: t.suspended, state: 'none' } : { status: t.schedule(spec.schedule ?? ''), state: 'none' };
    default:
      return { status: status.lastConditionState || t.pending, state: failure ? 'danger' : has('Ready') ? 'success' : 'info' };
  }
}
