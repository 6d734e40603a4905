import { edits } from '../../../text/edits';
import { text } from '../../../text/en';
import { choicesOf, listOf, pairsOf, toList, type Input, type Values } from '../../forms/model';
import { isValid } from '../environment';
import { commandProblem } from './handler';

const t = edits.strategy;

/**
 * EnvVar is an environment variable. The form does not show variables with valueFrom, and keeps
 * them.
 */
export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: unknown;
}

interface Tag {
  containerName: string;
  to: { kind?: string; name?: string; namespace?: string };
}

/** Hook is a deployment's action at a stage. Either execNewPod or tagImages is set. */
export interface Hook {
  failurePolicy: string;
  execNewPod?: { command?: string[]; containerName?: string; env?: EnvVar[]; volumes?: string[] };
  tagImages?: Tag[];
}

/**
 * environmentProblem returns the problem with the names of environment variables, if there is one.
 */
export function environmentProblem(value: string): string | undefined {
  return isValid(pairsOf(value).map(([name, content]) => ({ name, value: content }))) ? undefined : text.environment.invalid;
}

/** environmentValue formats the variables that the form shows. */
export function environmentValue(env: EnvVar[] | undefined): string {
  const pairs = (env ?? []).filter(({ valueFrom }) => valueFrom === undefined).map(({ name, value }) => [name, value ?? '']);
  return pairs.length === 0 ? '' : JSON.stringify(pairs);
}

/**
 * environmentOf returns the variables that refer to other objects, followed by the variables with
 * the given values.
 */
export function environmentOf(value: string | undefined, before: EnvVar[] | undefined): EnvVar[] | undefined {
  if ((value ?? '') === environmentValue(before)) {
    return before;
  }
  const references = (before ?? []).filter(({ valueFrom }) => valueFrom !== undefined);
  return [...references, ...pairsOf(value).map(([name, content]) => ({ name, value: content }))];
}

/** hookInputs returns the fields for a hook. */
export function hookInputs(prefix: string, containers: string[], volumes: string[], isPossible: (values: Values) => boolean): Input[] {
  const of = (...shown: string[]) => (values: Values) => isPossible(values) && shown.includes(values[`${prefix}hook`] ?? '');
  const any = of('execNewPod', 'tagImages');
  const volumesProblem = (value: string) => (listOf(value).every((name) => volumes.includes(name)) ? undefined : t.volumesInvalid(volumes.join(', ')));
  return [
    { key: `${prefix}hook`, label: t.hook, type: 'select', choices: choicesOf(t.hooks), isShown: isPossible },
    { key: `${prefix}policy`, label: t.policy, type: 'select', choices: choicesOf(t.policies), isShown: any },
    { key: `${prefix}container`, label: t.container, type: 'select', choices: containers.map((value) => ({ value, label: value })), help: t.containerHelp, isShown: any },
    { key: `${prefix}command`, label: t.command, type: 'list', required: true, help: edits.handler.commandHelp, isShown: of('execNewPod'), problem: commandProblem },
    { key: `${prefix}env`, label: t.environment, type: 'pairs', isShown: of('execNewPod'), problem: environmentProblem },
    ...(volumes.length > 0 ? [{ key: `${prefix}volumes`, label: t.volumes, type: 'list' as const, help: t.volumesHelp, isShown: of('execNewPod'), problem: volumesProblem }] : []),
    { key: `${prefix}tag`, label: t.tag, required: true, isShown: of('tagImages'), problem: (value) => (/^[^:\s]+:[^:\s]+$/.test(value) ? undefined : t.tagInvalid) },
  ];
}

/** hookValues returns the values in the fields for a hook. */
export function hookValues(prefix: string, hook: Hook | undefined, containers: string[]): Values {
  const { execNewPod, tagImages: [tag] = [] } = hook ?? {};
  return {
    [`${prefix}hook`]: execNewPod ? 'execNewPod' : tag ? 'tagImages' : '',
    [`${prefix}policy`]: hook?.failurePolicy ?? 'Abort',
    [`${prefix}container`]: (execNewPod ?? tag)?.containerName ?? containers[0] ?? '',
    [`${prefix}command`]: toList(execNewPod?.command ?? []),
    [`${prefix}env`]: environmentValue(execNewPod?.env),
    [`${prefix}volumes`]: toList(execNewPod?.volumes ?? []),
    [`${prefix}tag`]: tag?.to.name ?? '',
  };
}

/** hookOf returns the hook with the given values. It keeps the other tagged images. */
export function hookOf(prefix: string, values: Values, before: Hook | undefined): Hook | undefined {
  const value = (name: string) => values[prefix + name] ?? '';
  const [first, ...others] = before?.tagImages ?? [];
  const common = { failurePolicy: value('policy') };
  switch (value('hook')) {
    case 'execNewPod': {
      const env = environmentOf(value('env'), before?.execNewPod?.env);
      const volumes = listOf(value('volumes'));
      return { ...common, execNewPod: { ...before?.execNewPod, command: listOf(value('command')), containerName: value('container'), env, volumes } };
    }
    case 'tagImages':
      return { ...common, tagImages: [{ containerName: value('container'), to: { ...first?.to, kind: 'ImageStreamTag', name: value('tag') } }, ...others] };
    default:
      return undefined;
  }
}
