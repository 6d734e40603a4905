import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import { count, type Input, type Values } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { isSame, numbersOf, partsOf, setField, textsOf, type Edit, type Part } from './edit';
import { EditDialog } from './EditDialog';
import { handlerInputs, handlerOf, handlerValues, withoutHandler, type Handler } from './handler';

const t = edits.health;

type Probe = Handler & Partial<Record<keyof typeof t.numbers, number>>;
type Name = keyof typeof t.probes;

const probes = Object.keys(t.probes) as Name[];

/** least maps the numeric fields of a probe to their minimum values. */
const least: Record<keyof typeof t.numbers, number> = { initialDelaySeconds: 0, timeoutSeconds: 1, periodSeconds: 1, failureThreshold: 1, successThreshold: 1 };

/**
 * numbersOfProbe returns the numeric fields that a probe can have. Only readiness probes have a
 * success threshold.
 */
const numbersOfProbe = (name: string) => (Object.keys(least) as (keyof typeof least)[]).filter((number) => number !== 'successThreshold' || name === 'readinessProbe');

const partsOfWorkload = (object: LooseObject) => partsOf<Probe>(object, probes);

function inputsOf({ name, prefix }: Part<Probe>): Input[] {
  const isShown = (values: Values) => values[`${prefix}action`] !== '';
  const numbers = numbersOfProbe(name).map((number): Input => ({ key: prefix + number, label: t.numbers[number], type: 'number', isShown, problem: count(least[number]) }));
  return [...handlerInputs(prefix, ['httpGet', 'tcpSocket', 'exec', 'grpc']), ...numbers];
}

const valuesOf = ({ name, prefix, value }: Part<Probe>): Values => ({ ...handlerValues(prefix, value), ...textsOf(numbersOfProbe(name), prefix, value) });

function probeOf({ name, prefix, value }: Part<Probe>, values: Values): Probe | undefined {
  const handler = handlerOf(prefix, values, value);
  return handler && { ...withoutHandler(value ?? {}), ...numbersOf(numbersOfProbe(name), prefix, values), ...handler };
}

/** health changes the probes of a workload's containers. */
export const health: Edit = {
  title: t.action,
  sections: (object) => partsOfWorkload(object).map((part) => ({ title: t.probes[part.name as Name](part.container.name), help: t.help[part.name as Name], inputs: inputsOf(part) })),
  values: (object) => Object.assign({}, ...partsOfWorkload(object).map(valuesOf)) as Values,
  operations: (object, values) =>
    partsOfWorkload(object)
      .filter((part) => !isSame(valuesOf(part), values))
      .flatMap((part) => setField(part.path, part.value, probeOf(part, values))),
};

/** Health is the dialog for a workload's probes. */
export default function Health(props: DialogProps) {
  return <EditDialog edit={health} {...props} />;
}
