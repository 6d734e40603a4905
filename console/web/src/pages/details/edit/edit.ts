import type { LooseObject } from '../../../api/types';
import type { Container } from '../../../api/workloads';
import type { Input, Values } from '../../forms/model';
import { containersOf, containersPath } from '../environment';

/** Section is a part of a dialog with a heading. */
export interface Section {
  title: string;
  help?: string;
  inputs: Input[];
}

/** Edit is a dialog that changes parts of an object by a form. */
export interface Edit {
  title: string;
  sections: (object: LooseObject) => Section[];
  /** values are the values of all fields, for an object as it is. */
  values: (object: LooseObject) => Values;
  /**
   * operations returns the JSON patch that stores the values. It does not change fields with the
   * same value.
   */
  operations: (object: LooseObject, values: Values) => object[];
}

/** isSame reports whether values contain all entries of the values before. */
export function isSame(before: Values, values: Values): boolean {
  return Object.entries(before).every(([key, value]) => values[key] === value);
}

/** setField returns the operation that sets a field, or removes it if there is no value. */
export function setField(path: string, before: unknown, value: unknown): object[] {
  if (value === undefined) {
    return before === undefined ? [] : [{ op: 'remove', path }];
  }
  return [{ op: 'add', path, value }];
}

/**
 * numbersOf reads the numbers of some fields. Empty fields are undefined, so that they are removed.
 */
export function numbersOf(names: string[], prefix: string, values: Values): Record<string, number | undefined> {
  return Object.fromEntries(names.map((name) => [name, values[prefix + name] ? Number(values[prefix + name]) : undefined]));
}

/** textsOf returns fields of an object as values with a prefix. */
export function textsOf(names: string[], prefix: string, of: object | undefined): Values {
  const fields = (of ?? {}) as Record<string, string | number | undefined>;
  return Object.fromEntries(names.map((name) => [prefix + name, String(fields[name] ?? '')]));
}

/** Part is a field of a container, such as its readiness probe, with the prefix of its values. */
export interface Part<T> {
  container: Container;
  name: string;
  prefix: string;
  path: string;
  value: T | undefined;
}

/** partsOf returns fields with some names of all containers of a workload. */
export function partsOf<T>(object: LooseObject, names: string[], within: (container: Container) => object | undefined = (container) => container, below = ''): Part<T>[] {
  return containersOf(object).flatMap((container, index) =>
    names.map((name) => ({
      container,
      name,
      prefix: `c${index}-${name}-`,
      path: `/${containersPath(object.kind).join('/')}/${index}${below}/${name}`,
      value: (within(container) as Record<string, T | undefined> | undefined)?.[name],
    })),
  );
}
