import { isOwned } from './owners';
import type { Metadata, Row } from './types';
import type { Snapshot } from './watch';

/** PodState summarizes the state of a pod. */
export type PodState = 'ready' | 'notReady' | 'pending' | 'failed' | 'completed' | 'terminating';

/** PodSummary is a row of the server's pod table. */
export interface PodSummary {
  name: string;
  uid: string;
  labels: Record<string, string>;
  /** status is the status in the server's table, such as CrashLoopBackOff. */
  status: string;
  state: PodState;
  /** restarts is the total number of container restarts. */
  restarts: number;
  /**
   * sinceRestart is the time in seconds between the latest restart and the pod's latest change. It
   * is undefined if the server's table does not contain it.
   */
  sinceRestart?: number;
  /** isBare means that no controller, build or deployment owns the pod. */
  isBare: boolean;
}

/** summarize parses the server's pod table. */
export function summarize(table: Snapshot<Row>): PodSummary[] {
  const at = (name: string) => table.columns.findIndex((column) => column.name === name);
  const [ready, status, restarts] = [at('Ready'), at('Status'), at('Restarts')];
  return table.items.map((row) => {
    const word = String(row.cells[status] ?? '');
    const restarted = String(row.cells[restarts] ?? ''); // such as 5 (3m20s ago)
    return {
      name: row.metadata.name,
      uid: row.metadata.uid,
      labels: row.metadata.labels ?? {},
      status: word,
      state: row.metadata.deletionTimestamp ? 'terminating' : stateOf(word, String(row.cells[ready] ?? '')),
      restarts: parseInt(restarted, 10) || 0,
      sinceRestart: secondsOf(/\((.*) ago\)/.exec(restarted)?.[1]),
      isBare: isBare(row),
    };
  });
}

const unitSeconds: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, y: 365 * 86_400 };

/** secondsOf parses a duration in the server's tables, such as 3m20s. */
function secondsOf(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : [...duration.matchAll(/(\d+)([smhdy])/g)].reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitSeconds[unit] ?? 0), 0);
}

/** isBare reports whether no controller, build or deployment owns a pod. */
export function isBare(pod: { metadata: Metadata }): boolean {
  const { annotations, labels } = pod.metadata;
  return !isOwned(pod) && !annotations?.['openshift.io/build.name'] && !labels?.['openshift.io/deployer-pod-for.name'];
}

const failures = /Error|BackOff|Err|Invalid|Failed|OOMKilled|Evicted|Unknown|DeadlineExceeded|NodeLost/;

function stateOf(status: string, ready: string): PodState {
  if (status === 'Completed' || status === 'Succeeded') {
    return 'completed';
  }
  if (failures.test(status)) {
    return 'failed';
  }
  if (status !== 'Running') {
    return 'pending';
  }
  const [have, want] = ready.split('/');
  return have === want ? 'ready' : 'notReady';
}

/** selects reports whether a selector matches labels. An empty selector matches nothing. */
export function selects(selector: Record<string, string> | undefined, labels: Record<string, string>): boolean {
  const entries = Object.entries(selector ?? {});
  return entries.length > 0 && entries.every(([key, value]) => labels[key] === value);
}
