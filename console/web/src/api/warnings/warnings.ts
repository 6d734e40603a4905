import { buildWarnings, cycleWarnings, triggerWarnings } from './images';
import { routeWarnings, scalerWarnings } from './network';
import { podWarnings } from './pods';
import { levels, type State, type Warning } from './state';
import { deploymentWarnings, overlapWarnings, refusalWarnings, templateWarnings } from './workloads';

/** rules contains the rules of oc status. Each returns the problems that it finds. */
const rules: ((state: State) => Warning[])[] = [
  routeWarnings,
  triggerWarnings,
  deploymentWarnings,
  refusalWarnings,
  buildWarnings,
  cycleWarnings,
  podWarnings,
  overlapWarnings,
  scalerWarnings,
  templateWarnings,
];

/** warningsOf returns a project's problems, most severe first. */
export function warningsOf(state: State): Warning[] {
  const all = rules.flatMap((rule) => rule(state));
  return levels.flatMap((level) => all.filter((warning) => warning.level === level));
}
