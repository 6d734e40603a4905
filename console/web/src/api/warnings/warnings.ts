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

/** keyOf returns a string that identifies a warning. */
export const keyOf = ({ resource, name, problem }: Warning) => `${resource} ${name} ${problem}`;

/** warningsOf returns a project's problems without duplicates, most severe first. */
export function warningsOf(state: State): Warning[] {
  const all = new Map(rules.flatMap((rule) => rule(state)).map((warning) => [keyOf(warning), warning]));
  return levels.flatMap((level) => [...all.values()].filter((warning) => warning.level === level));
}
