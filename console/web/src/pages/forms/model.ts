import type { KubeObject } from '../../api/types';

/** Values are what a person entered, by the keys of fields. */
export type Values = Readonly<Record<string, string>>;

/** Choice is an option of a select. */
export interface Choice {
  value: string;
  label: string;
}

/** Source lists the choices that the objects of a collection are. */
export interface Source {
  path: (project: string) => string;
  choices: (items: KubeObject[], values: Values) => Choice[];
}

/** Input is a field of a form. The default type is a line of text. */
export interface Input {
  key: string;
  label: string;
  type?: 'password' | 'area' | 'select' | 'number' | 'slider' | 'pairs';
  help?: string;
  required?: boolean;
  initial?: string;
  choices?: Choice[];
  source?: Source;
  /** isShown hides fields that other values make meaningless. */
  isShown?: (values: Values) => boolean;
  /** problem says what is wrong with a value that is not empty. */
  problem?: (value: string) => string | undefined;
}

/** Form is a form for a new object of a kind. */
export interface Form {
  inputs: Input[];
  /** object returns the object without its name. */
  object: (values: Values) => Omit<KubeObject, 'metadata'>;
}

/** initialValues returns the values of an untouched form. */
export function initialValues(form: Form): Values {
  return Object.fromEntries(form.inputs.map((input) => [input.key, input.initial ?? input.choices?.[0]?.value ?? '']));
}

/** shownInputs returns the fields that the values make meaningful. */
export function shownInputs(form: Form, values: Values): Input[] {
  return form.inputs.filter((input) => input.isShown?.(values) ?? true);
}

/** isComplete reports whether all fields that are shown have valid values. */
export function isComplete(form: Form, values: Values): boolean {
  return shownInputs(form, values).every((input) => {
    const value = values[input.key] ?? '';
    return value.trim() === '' ? !input.required : input.problem?.(value) === undefined;
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
