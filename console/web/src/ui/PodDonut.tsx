import type { PodState, PodSummary } from '../api/pods';
import { text } from '../text/en';
import { Donut } from './Donut';

const states: [PodState, string][] = [
  ['ready', 'var(--pf-t--global--color--status--success--default)'],
  ['notReady', 'var(--pf-t--global--color--brand--default)'],
  ['pending', 'var(--pf-t--global--color--status--info--default)'],
  ['failed', 'var(--pf-t--global--color--status--danger--default)'],
  ['completed', 'var(--pf-t--global--color--nonstatus--gray--default)'],
  ['terminating', 'var(--pf-t--global--color--status--warning--default)'],
];

/** PodDonut shows the states of a workload's pods. */
export function PodDonut({ pods, desired }: { pods: PodSummary[]; desired?: number }) {
  const parts = states.map(([state, color]) => ({ label: text.overview.states[state], color, count: pods.filter((pod) => pod.state === state).length }));
  const active = pods.filter((pod) => pod.state !== 'completed' && pod.state !== 'terminating').length;
  const total = desired !== undefined && desired !== active ? `${active}/${desired}` : active;
  return <Donut parts={parts} total={total} caption={text.overview.pods(active)} />;
}
