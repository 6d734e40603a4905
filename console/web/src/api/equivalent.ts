import type { Parameter, Template } from './catalog';
import { quote } from './source';
import type { KubeObject } from './types';

/** secretName matches the names of parameters that usually contain secrets. */
const secretName = /PASSWORD|PASSWD|SECRET|TOKEN|PRIVATE|_KEY$/i;

/** Equivalent is an oc command that has the same effect as a form. */
export interface Equivalent {
  command: string;
  /** lacksSecrets reports whether the user must add values that can be secret. */
  lacksSecrets: boolean;
}

/**
 * templateCommandOf returns the oc command that creates a template's objects. For a value that can
 * be secret, the command contains a variable of the shell.
 */
export function templateCommandOf({ metadata, parameters = [] }: Template, project: string, values: Record<string, string>): Equivalent {
  const changed = parameters.filter(({ name, value = '' }) => (values[name] ?? value) !== value);
  const mayBeSecret = ({ name, generate }: Parameter) => /^\w+$/.test(name) && (generate || secretName.test(name));
  const flags = changed.flatMap((parameter) => ['-p', mayBeSecret(parameter) ? `${parameter.name}="$${parameter.name}"` : quote(`${parameter.name}=${values[parameter.name]}`)]);
  const words = ['oc', 'new-app', '-n', project, `--template=${metadata.namespace}/${metadata.name}`].map(quote);
  return { command: [...words, ...flags].join(' '), lacksSecrets: changed.some(mayBeSecret) };
}

/** placeholder replaces a value that can be secret. */
export const placeholder = '<secret>';

/**
 * createCommandOf returns the oc command that creates objects. It contains a placeholder for each
 * parameter of a service that can be secret.
 */
export function createCommandOf(objects: KubeObject[], project: string): Equivalent {
  let lacksSecrets = false;
  const withoutSecret = (name: string, value: unknown) => {
    const mayBeSecret = secretName.test(name);
    lacksSecrets ||= mayBeSecret;
    return mayBeSecret ? placeholder : value;
  };
  const items = objects.map((object) => {
    const { spec } = object as KubeObject & { spec?: { parameters?: unknown } };
    return spec?.parameters === undefined ? object : { ...object, spec: { ...spec, parameters: JSON.parse(JSON.stringify(spec.parameters, withoutSecret)) as unknown } };
  });
  const list = { apiVersion: 'v1', kind: 'List', items };
  return { command: `oc create -n ${quote(project)} -f - <<'END'\n${JSON.stringify(list, null, 2)}\nEND`, lacksSecrets };
}

/**
 * downloadCommandOf returns the oc command that copies the file FILE from a directory. Programs in
 * the container choose the names of its directories.
 */
export function downloadCommandOf(namespace: string, pod: string, container: string, directory: string): string {
  return ['oc', 'cp', `${namespace}/${pod}:${directory.replace(/\/+$/, '')}/FILE`, 'FILE', '-c', container].map(quote).join(' ');
}
