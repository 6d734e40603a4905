import { warnings as t } from '../../text/warnings';
import { lastSeen } from '../events';
import type { Condition, KubeObject } from '../types';
import type { State, Warning } from './state';

/** manyRestarts is the number of container restarts that indicates a problem. */
const manyRestarts = 5;

/**
 * restartPeriod is the time, in seconds, after a pod's latest restart during which its restarts
 * indicate a problem.
 */
const restartPeriod = 3600;

/**
 * mountPeriod is the time, in milliseconds, after a failed mount during which it indicates a
 * problem. The kubelet tries again at least every two minutes.
 */
const mountPeriod = 5 * 60_000;

/** podWarnings finds pods that fail, restart repeatedly, have no node or lack a volume. */
export function podWarnings(state: State): Warning[] {
  const failed = state.pods.flatMap(({ name, status, state: word, restarts, sinceRestart = 0 }): Warning[] => {
    if (word === 'failed') {
      const remedy = Object.entries(t.podRemedies).find(([part]) => status.includes(part))?.[1] ?? '';
      return [{ level: 'error', resource: 'pods', name, tab: status.includes('CrashLoop') ? 'logs' : undefined, problem: status, remedy }];
    }
    return word !== 'completed' && restarts >= manyRestarts && sinceRestart < restartPeriod ? [{ level: 'warning', resource: 'pods', name, tab: 'logs', ...t.restarts(restarts) }] : [];
  });
  const unscheduled = (state.waiting as unknown as (KubeObject & { status?: { conditions?: Condition[] } })[]).flatMap(({ metadata: { name }, status }): Warning[] => {
    const condition = status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
    return condition ? [{ level: 'warning', resource: 'pods', name, ...t.noNode(condition.message ?? '') }] : [];
  });
  const mounts = (state.mounts ?? []).filter((event) => Date.now() - Date.parse(lastSeen(event)) < mountPeriod);
  const unmounted = state.waiting.flatMap(({ metadata: { name, uid } }): Warning[] => {
    const event = mounts.find(({ involvedObject }) => involvedObject.uid === uid);
    return event ? [{ level: 'error', resource: 'pods', name, ...t.noVolume(event.message ?? '') }] : [];
  });
  return [...failed, ...unscheduled, ...unmounted];
}
