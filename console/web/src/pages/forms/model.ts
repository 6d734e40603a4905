import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';

/** Values contains the text that the user entered, by the keys of fields. */
export type Values = Readonly<Record<string, string>>;

/** Choice is an option of a select. */
export interface Choice {
  value: string;
  label: string;
}

/** Source provides the objects of a collection as choices. */
export interface Source {
  path: (project: string) => string;
  choices: (items: KubeObject[], values: Values) => Choice[];
}

/** Input is a field of a form. The default type is a line of text. */
export interface Input {
  key: string;
  label: string;
  type?: 'password' | 'area' | 'select' | 'number' | 'slider' | 'pairs' | 'list';
  help?: string;
  required?: boolean;
  initial?: string;
  choices?: Choice[];
  source?: Source;
  /** isShown hides fields that other values make meaningless. */
  isShown?: (values: Values) => boolean;
  /**
   * problem returns the problem of a value that is not empty. values contains all values of the
   * form.
   */
  problem?: (value: string, values: Values) => string | undefined;
}

/** Form is a form for a new object of a kind. */
export interface Form {
  inputs: Input[];
  /** object returns the object without its name. */
  object: (values: Values) => Omit<KubeObject, 'metadata'>;
}

/** Fields are the fields of a form. */
export type Fields = Pick<Form, 'inputs'>;

/**
 * initialValues returns the values of an untouched form. query contains the values that a link
 * sets.
 */
export function initialValues(form: Form, query?: URLSearchParams): Values {
  return Object.fromEntries(form.inputs.map((input) => [input.key, query?.get(input.key) ?? input.initial ?? input.choices?.[0]?.value ?? '']));
}

/** shownInputs returns the fields that the values make meaningful. */
export function shownInputs(form: Fields, values: Values): Input[] {
  return form.inputs.filter((input) => input.isShown?.(values) ?? true);
}

/** isComplete reports whether all fields that are shown have valid values. */
export function isComplete(form: Fields, values: Values): boolean {
  return shownInputs(form, values).every((input) => {
    const value = values[input.key] ?? '';
    return value.trim() === '' ? !input.required : input.problem?.(value, values) === undefined;
  });
}

/** present returns the entries whose value is not empty. */
export function present<T extends Record<string, unknown>>(entries: T): Partial<T> {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== '' && value !== undefined)) as Partial<T>;
}

/** pairsOf reads the value of a field with pairs. */
export function pairsOf(value: string | undefined): [key: string, value: string][] {
  return value ? (JSON.parse(value) as [string, string][]) : [];
}

/** listOf reads the value of a field with a list of texts. */
export function listOf(value: string | undefined): string[] {
  return value ? (JSON.parse(value) as string[]) : [];
}

/** toList writes the value of a field with a list of texts. The value of an empty list is empty. */
export function toList(items: string[]): string {
  return items.length === 0 ? '' : JSON.stringify(items);
}

/** count returns the problem of a value that is not a whole number, or is too small. */
export function count(least: number): (value: string) => string | undefined {
  return (value) => (/^\d+$/.test(value) && Number(value) >= least ? undefined : text.forms.countInvalid(least));
}
