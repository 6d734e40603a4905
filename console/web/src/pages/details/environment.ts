import { unchanged } from '../../api/http';
import type { Container } from '../../api/workloads';
import type { LooseObject } from '../../api/types';

/**
 * Variable is an environment variable. If another object contains the value, reference describes
 * it.
 */
export interface Variable {
  name: string;
  value: string;
  reference?: unknown;
}

const namePattern = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;

/** containersPath returns the path of a workload's containers. */
export function containersPath(kind: string): string[] {
  return kind === 'CronJob' ? ['spec', 'jobTemplate', 'spec', 'template', 'spec', 'containers'] : ['spec', 'template', 'spec', 'containers'];
}

/** containersOf returns a workload's containers. */
export function containersOf(object: LooseObject): Container[] {
  let value: unknown = object;
  for (const key of containersPath(object.kind)) {
    value = (value as Record<string, unknown> | undefined)?.[key];
  }
  return Array.isArray(value) ? (value as Container[]) : [];
}

/**
 * Part is a part of an object that has environment variables: a container or a build's strategy.
 */
export interface Part extends Pick<Container, 'name' | 'env'> {
  path: (string | number)[];
}

/** partsOf returns the parts of a workload or of a build configuration that have variables. */
export function partsOf(object: LooseObject): Part[] {
  if (object.kind !== 'BuildConfig') {
    return containersOf(object).map(({ name, env }, index) => ({ name, env, path: [...containersPath(object.kind), index] }));
  }
  const { strategy = {} } = object.spec as { strategy?: Record<string, Pick<Container, 'env'>> };
  return Object.entries(strategy).flatMap(([key, { env }]) => (key.endsWith('Strategy') ? [{ name: key, env, path: ['spec', 'strategy', key] }] : []));
}

/** variablesOf returns the environment variables of an object's part. */
export function variablesOf(part: Part | undefined): Variable[] {
  return (part?.env ?? []).map(({ name, value, valueFrom }) => ({ name, value: value ?? '', ...(valueFrom ? { reference: valueFrom } : {}) }));
}

/** describe returns a reference's target, such as secretKeyRef db/password. */
export function describe(reference: unknown): string {
  const [kind, fields] = Object.entries(reference as Record<string, Record<string, unknown>>)[0] ?? ['', {}];
  const words = ['name', 'key', 'fieldPath', 'containerName', 'resource'].map((key) => fields[key]).filter((word) => typeof word === 'string');
  return `${kind} ${words.join('/')}`;
}

/** isValid reports whether names are valid and unique. */
export function isValid(variables: Variable[]): boolean {
  const names = variables.map(({ name }) => name);
  return names.every((name) => namePattern.test(name)) && new Set(names).size === names.length;
}

/**
 * patchOf returns the JSON patch that sets a part's variables. The patch fails if the spec has
 * changed since it was read.
 */
export function patchOf(object: LooseObject, part: Part, variables: Variable[]): object[] {
  const value = variables.map(({ name, value: text, reference }) => (reference ? { name, valueFrom: reference } : { name, value: text }));
  return [unchanged(object), { op: 'add', path: '/' + [...part.path, 'env'].join('/'), value }];
}
