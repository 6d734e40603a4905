import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';

/** Values maps the keys of fields to the text that the user entered. */
export type Values = Readonly<Record<string, string>>;

/** Choice is an option in a selection list. */
export interface Choice {
  value: string;
  label: string;
}

/** choicesOf converts values with labels to choices. */
export function choicesOf(labels: Readonly<Record<string, string>>): Choice[] {
  return Object.entries(labels).map(([value, label]) => ({ value, label }));
}

/** nameChoices returns the names of objects as choices. */
export function nameChoices(items: KubeObject[]): Choice[] {
  return items.map(({ metadata: { name } }) => ({ value: name, label: name }));
}

/** Source provides a collection's objects as choices. */
export interface Source {
  path: (project: string) => string;
  choices: (items: KubeObject[], values: Values) => Choice[];
}

/** namesOf returns a source that provides the names of a project's objects, such as secrets. */
export function namesOf(collection: string): Source {
  return { path: (project) => `/api/v1/namespaces/${encodeURIComponent(project)}/${collection}`, choices: nameChoices };
}

/** Input is a form field. The default type is a single line of text. */
export interface Input {
  key: string;
  label: string;
  type?: 'password' | 'area' | 'select' | 'number' | 'slider' | 'pairs' | 'list';
  help?: string;
  required?: boolean;
  initial?: string;
  choices?: Choice[];
  source?: Source;
  /** isShown reports whether the field is relevant, given the values of the form. */
  isShown?: (values: Values) => boolean;
  /**
   * problem returns the problem with a nonempty value, if there is one. values contains all values
   * of the form.
   */
  problem?: (value: string, values: Values) => string | undefined;
}

/** Form is a form for a new object of a kind. */
export interface Form {
  inputs: Input[];
  /** object returns the object without its name. */
  object: (values: Values) => Omit<KubeObject, 'metadata'>;
}

/** Fields contains a form's fields. */
export type Fields = Pick<Form, 'inputs'>;

/** initialValues returns a form's initial values. query contains the values that a link sets. */
export function initialValues(form: Form, query?: URLSearchParams): Values {
  return Object.fromEntries(form.inputs.map((input) => [input.key, query?.get(input.key) ?? input.initial ?? input.choices?.[0]?.value ?? '']));
}

/** shownInputs returns the fields that are relevant, given the values. */
export function shownInputs(form: Fields, values: Values): Input[] {
  return form.inputs.filter((input) => input.isShown?.(values) ?? true);
}

/** isComplete reports whether all shown fields have valid values. */
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

/** pairsOf parses the value of a field that contains pairs. */
export function pairsOf(value: string | undefined): [key: string, value: string][] {
  return value ? (JSON.parse(value) as [string, string][]) : [];
}

/** listOf parses the value of a field that contains a list of strings. */
export function listOf(value: string | undefined): string[] {
  return value ? (JSON.parse(value) as string[]) : [];
}

/** toList formats a list of strings as a field's value. For an empty list, the value is empty. */
export function toList(items: string[]): string {
  return items.length === 0 ? '' : JSON.stringify(items);
}

/**
 * count returns a function that reports a problem if a value is not a whole number or is too small.
 */
export function count(least: number): (value: string) => string | undefined {
  return (value) => (/^\d+$/.test(value) && Number(value) >= least ? undefined : text.forms.countInvalid(least));
}
