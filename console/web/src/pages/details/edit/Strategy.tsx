import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import { count, listOf, present, toList, type Input, type Values } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { containersOf } from '../environment';
import { isSame, numbersOf, setField, textsOf, type Edit } from './edit';
import { EditDialog } from './EditDialog';
import { environmentOf, environmentProblem, environmentValue, hookInputs, hookOf, hookValues, type EnvVar, type Hook } from './hook';

const t = edits.strategy;

type NumberName = keyof typeof t.numbers;
type Stage = 'pre' | 'mid' | 'post';

interface Params extends Partial<Record<Stage, Hook>> {
  maxUnavailable?: number | string;
  maxSurge?: number | string;
  timeoutSeconds?: number;
}

/** Strategy is the strategy of a Deployment or a DeploymentConfig. */
interface Strategy {
  type?: string;
  rollingUpdate?: Params;
  rollingParams?: Params;
  recreateParams?: Params;
  customParams?: { image?: string; command?: string[]; environment?: EnvVar[] };
  activeDeadlineSeconds?: number;
}

interface Spec {
  strategy?: Strategy;
  template?: { spec?: { volumes?: { name: string }[] } };
}

const stages: Stage[] = ['pre', 'mid', 'post'];

/** stagesOf maps each strategy type to the stages that can have a hook. */
const stagesOf: Record<string, Stage[]> = { Rolling: ['pre', 'post'], Recreate: stages };

/**
 * rollingNumbers contains the names of the numeric parameters of the Rolling type. The Recreate
 * type has only timeoutSeconds.
 */
const rollingNumbers: NumberName[] = ['timeoutSeconds', 'intervalSeconds', 'updatePeriodSeconds'];

/**
 * specNumbers returns the names of the numeric fields outside the strategy that control rollouts.
 */
const specNumbers = (object: LooseObject): NumberName[] =>
  isConfig(object) ? ['minReadySeconds', 'revisionHistoryLimit'] : ['minReadySeconds', 'progressDeadlineSeconds', 'revisionHistoryLimit'];

const isConfig = (object: LooseObject) => object.kind === 'DeploymentConfig';
const specOf = (object: LooseObject) => object.spec as Spec;
const strategyOf = (object: LooseObject) => specOf(object).strategy ?? {};
const namesOf = (object: LooseObject) => containersOf(object).map(({ name }) => name);

/** paramsOf returns the parameters of a strategy's type. */
function paramsOf({ type, rollingUpdate, rollingParams, recreateParams }: Strategy): Params {
  return rollingUpdate ?? (type === 'Recreate' ? recreateParams : rollingParams) ?? {};
}

const isRolling = ({ type }: Values) => type === 'RollingUpdate' || type === 'Rolling';
const isZero = (value: string | undefined) => /^0+%?$/.test(value ?? '');

function amountProblem(value: string, values: Values): string | undefined {
  if (!/^\d+%?$/.test(value)) {
    return t.amountInvalid;
  }
  return isZero(values.maxSurge) && isZero(values.maxUnavailable) ? t.bothZero : undefined;
}

function number(name: NumberName, isShown?: (values: Values) => boolean): Input {
  const least = name === 'minReadySeconds' || name === 'revisionHistoryLimit' ? 0 : 1;
  return { key: name, label: t.numbers[name], type: 'number', isShown, problem: count(least) };
}

function inputsOf(object: LooseObject): Input[] {
  const types = isConfig(object) ? ['Rolling', 'Recreate', 'Custom'] : ['RollingUpdate', 'Recreate'];
  const isCustom = ({ type }: Values) => type === 'Custom';
  const config: Input[] = [
    number('timeoutSeconds', (values) => !isCustom(values)),
    number('intervalSeconds', isRolling),
    number('updatePeriodSeconds', isRolling),
    { key: 'image', label: t.image, required: true, isShown: isCustom },
    { key: 'command', label: t.command, type: 'list', isShown: isCustom },
    { key: 'environment', label: t.environment, type: 'pairs', isShown: isCustom, problem: environmentProblem },
    number('activeDeadlineSeconds'),
  ];
  return [
    { key: 'type', label: t.type, type: 'select', choices: types.map((value) => ({ value, label: t.types[value] ?? value })) },
    { key: 'maxUnavailable', label: t.maxUnavailable, help: t.amountHelp, isShown: isRolling, problem: amountProblem },
    { key: 'maxSurge', label: t.maxSurge, help: t.amountHelp, isShown: isRolling, problem: amountProblem },
    ...(isConfig(object) ? config : []),
    ...specNumbers(object).map((name) => number(name)),
  ];
}

function strategyValues(object: LooseObject): Values {
  const current = strategyOf(object);
  const params = paramsOf(current);
  const common = { type: current.type ?? '', ...textsOf(['maxUnavailable', 'maxSurge'], '', params) };
  if (!isConfig(object)) {
    return common;
  }
  return {
    ...common,
    ...textsOf([...rollingNumbers], '', params),
    ...textsOf(['image'], '', current.customParams),
    command: toList(current.customParams?.command ?? []),
    environment: environmentValue(current.customParams?.environment),
    ...textsOf(['activeDeadlineSeconds'], '', current),
    ...(Object.assign({}, ...stages.map((stage) => hookValues(`${stage}-`, params[stage], namesOf(object)))) as Values),
  };
}

const amount = (value: string | undefined) => (/^\d+$/.test(value ?? '') ? Number(value) : value || undefined);

const amountsOf = (values: Values) => present({ maxUnavailable: amount(values.maxUnavailable), maxSurge: amount(values.maxSurge) });

/** deploymentStrategy returns a Deployment's strategy with the values from the form. */
function deploymentStrategy({ type = '', ...values }: Values): Strategy {
  return type === 'RollingUpdate' ? { type, rollingUpdate: amountsOf(values) } : { type };
}

/**
 * configStrategy returns a DeploymentConfig's strategy with the values from the form. It moves
 * hooks to the parameters of the new type.
 */
function configStrategy(before: Strategy, values: Values): Strategy {
  const { rollingParams, recreateParams, customParams, ...kept } = before;
  const type = values.type ?? '';
  const common = { ...kept, type, ...numbersOf(['activeDeadlineSeconds'], '', values) };
  const old = paramsOf(before);
  const hooks = Object.fromEntries((stagesOf[type] ?? []).map((stage) => [stage, hookOf(`${stage}-`, values, old[stage])]));
  switch (type) {
    case 'Rolling':
      return { ...common, rollingParams: { ...rollingParams, ...numbersOf(rollingNumbers, '', values), maxUnavailable: undefined, maxSurge: undefined, ...amountsOf(values), ...hooks } };
    case 'Recreate':
      return { ...common, recreateParams: { ...recreateParams, ...numbersOf(['timeoutSeconds'], '', values), ...hooks } };
    default: {
      const environment = environmentOf(values.environment, customParams?.environment);
      return { ...before, ...common, customParams: { ...customParams, image: values.image, command: listOf(values.command), environment } };
    }
  }
}

/** strategy changes how a workload replaces its pods, and the strategy's hooks. */
export const strategy: Edit = {
  title: t.action,
  sections: (object) => {
    const volumes = (specOf(object).template?.spec?.volumes ?? []).map(({ name }) => name);
    const isPossible = (stage: Stage) => (values: Values) => (stagesOf[values.type ?? ''] ?? []).includes(stage);
    const hooks = stages.map((stage) => ({ title: t.stages[stage] ?? stage, inputs: hookInputs(`${stage}-`, namesOf(object), volumes, isPossible(stage)) }));
    return [{ title: t.title, inputs: inputsOf(object) }, ...(isConfig(object) ? hooks : [])];
  },
  values: (object) => ({ ...strategyValues(object), ...textsOf(specNumbers(object), '', specOf(object)) }),
  operations: (object, values) => {
    const spec = specOf(object) as Record<string, unknown>;
    const current = strategyOf(object);
    const next = isConfig(object) ? configStrategy(current, values) : deploymentStrategy(values);
    const before = textsOf(specNumbers(object), '', spec);
    return [
      ...(isSame(strategyValues(object), values) ? [] : setField('/spec/strategy', current, next)),
      ...specNumbers(object)
        .filter((name) => before[name] !== values[name])
        .flatMap((name) => setField(`/spec/${name}`, spec[name], numbersOf([name], '', values)[name])),
    ];
  },
};

/** StrategyDialog is the dialog for a workload's strategy. */
export default function StrategyDialog(props: DialogProps) {
  return <EditDialog edit={strategy} {...props} />;
}
