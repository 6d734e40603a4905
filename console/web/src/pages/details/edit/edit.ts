import type { LooseObject } from '../../../api/types';
import type { Container } from '../../../api/workloads';
import type { Input, Values } from '../../forms/model';
import { containersOf, containersPath } from '../environment';

/** Section is a part of a dialog with a heading, unless its title is empty. */
export interface Section {
  title: string;
  help?: string;
  inputs: Input[];
}

/** Edit is a dialog that changes parts of an object with a form. */
export interface Edit {
  title: string;
  sections: (object: LooseObject) => Section[];
  /** values returns the values of all fields for an object. */
  values: (object: LooseObject) => Values;
  /**
   * operations returns the JSON patch that stores the values. The patch does not change fields
   * whose values are unchanged.
   */
  operations: (object: LooseObject, values: Values) => object[];
}

/** isSame reports whether values contains all entries of the previous values. */
export function isSame(before: Values, values: Values): boolean {
  return Object.entries(before).every(([key, value]) => values[key] === value);
}

/**
 * setField returns the JSON patch operation that sets a field, or removes the field if there is no
 * value.
 */
export function setField(path: string, before: unknown, value: unknown): object[] {
  if (value === undefined) {
    return before === undefined ? [] : [{ op: 'remove', path }];
  }
  return [{ op: 'add', path, value }];
}

/**
 * numbersOf parses fields that contain numbers. Empty fields are undefined, so that they are
 * removed.
 */
export function numbersOf(names: string[], prefix: string, values: Values): Record<string, number | undefined> {
  return Object.fromEntries(names.map((name) => [name, values[prefix + name] ? Number(values[prefix + name]) : undefined]));
}

/** textsOf returns an object's fields as values whose keys have a prefix. */
export function textsOf(names: string[], prefix: string, of: object | undefined): Values {
  const fields = (of ?? {}) as Record<string, string | number | undefined>;
  return Object.fromEntries(names.map((name) => [prefix + name, String(fields[name] ?? '')]));
}

/**
 * Part is a field of a container, such as its readiness probe. prefix is the prefix of the keys of
 * the field's values.
 */
export interface Part<T> {
  container: Container;
  name: string;
  prefix: string;
  path: string;
  value: T | undefined;
}

/** partsOf returns the given fields of each of a workload's containers. */
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
