import type { Parameter, Template } from './catalog';
import { quote } from './source';
import type { KubeObject } from './types';

/** secretName matches the names of parameters that usually contain secrets. */
const secretName = /PASSWORD|PASSWD|SECRET|TOKEN|PRIVATE|_KEY$/i;

/**
 * templateCommandOf returns the oc command that creates a template's objects. For a value that can
 * be secret, the command contains a variable of the shell.
 */
export function templateCommandOf({ metadata, parameters = [] }: Template, project: string, values: Record<string, string>): string {
  const changed = parameters.filter(({ name, value = '' }) => (values[name] ?? value) !== value);
  const mayBeSecret = ({ name, generate }: Parameter) => /^\w+$/.test(name) && (generate || secretName.test(name));
  const flags = changed.flatMap((parameter) => ['-p', mayBeSecret(parameter) ? `${parameter.name}="$${parameter.name}"` : quote(`${parameter.name}=${values[parameter.name]}`)]);
  return [...['oc', 'new-app', '-n', project, `--template=${metadata.namespace}/${metadata.name}`].map(quote), ...flags].join(' ');
}

/** placeholder replaces a value that can be secret. */
export const placeholder = '<secret>';

/** withoutSecrets replaces the values that can be secret, at any depth. */
function withoutSecrets(parameters: unknown): unknown {
  return JSON.parse(JSON.stringify(parameters, (name, value: unknown) => (secretName.test(name) ? placeholder : value)));
}

/**
 * createCommandOf returns the oc command that creates objects. It contains a placeholder for each
 * parameter of a service that can be secret.
 */
export function createCommandOf(objects: KubeObject[], project: string): string {
  const items = objects.map((object) => {
    const { spec } = object as KubeObject & { spec?: { parameters?: unknown } };
    return spec?.parameters === undefined ? object : { ...object, spec: { ...spec, parameters: withoutSecrets(spec.parameters) } };
  });
  const list = { apiVersion: 'v1', kind: 'List', items };
  return `oc create -n ${quote(project)} -f - <<'END'\n${JSON.stringify(list, null, 2)}\nEND`;
}
