import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { at } from './facts';

/** webhookTypes contains the trigger types that have a URL. */
const webhookTypes = ['GitHub', 'GitLab', 'Bitbucket', 'Generic'];

/**
 * Webhook is a URL that triggers a build. reference is the name of the Secret that contains the
 * webhook's secret.
 */
export interface Webhook {
  type: string;
  secret: string;
  reference?: string;
}

interface Trigger {
  type: string;
  [key: string]: unknown;
}

const triggersOf = (object: LooseObject) => ((object.spec as { triggers?: Trigger[] }).triggers ?? []).filter((trigger) => typeof trigger.type === 'string');

/** webhooksOf returns a build configuration's webhooks. */
export function webhooksOf(object: LooseObject): Webhook[] {
  return triggersOf(object)
    .filter(({ type }) => webhookTypes.includes(type))
    .map((trigger) => {
      const hook = (trigger[trigger.type.toLowerCase()] ?? {}) as { secret?: string; secretReference?: { name: string } };
      const reference = hook.secretReference?.name;
      return { type: trigger.type, secret: reference ?? hook.secret ?? '', reference };
    });
}

/** Setting is a field in the editor. Its value is text, or true or false for a check box. */
export interface Setting {
  path: string;
  label: string;
  check?: boolean;
  /**
   * within is the path of an object, such as spec.source.git. The field is shown only if this
   * object exists.
   */
  within: string;
  /** isReference means that an empty value removes the object that contains the field. */
  isReference?: boolean;
}

const t = text.builds;
const source = 'spec.strategy.sourceStrategy';
const docker = 'spec.strategy.dockerStrategy';

const settings: Setting[] = [
  { path: 'spec.source.git.uri', label: text.catalog.repository, within: 'spec.source.git' },
  { path: 'spec.source.git.ref', label: text.catalog.reference, within: 'spec.source.git' },
  { path: 'spec.source.contextDir', label: text.catalog.contextDir, within: 'spec.source' },
  { path: 'spec.source.sourceSecret.name', label: images.git.secret, within: 'spec.source.git', isReference: true },
  { path: `${source}.from.name`, label: t.builder, within: `${source}.from` },
  { path: `${source}.incremental`, label: t.incremental, check: true, within: source },
  { path: `${source}.forcePull`, label: t.forcePull, check: true, within: source },
  { path: `${docker}.from.name`, label: t.builder, within: `${docker}.from` },
  { path: `${docker}.dockerfilePath`, label: t.dockerfile, within: docker },
  { path: `${docker}.noCache`, label: t.noCache, check: true, within: docker },
  { path: `${docker}.forcePull`, label: t.forcePull, check: true, within: docker },
  { path: 'spec.strategy.customStrategy.from.name', label: t.builder, within: 'spec.strategy.customStrategy.from' },
  { path: 'spec.output.to.name', label: text.facts.output, within: 'spec.output.to' },
];

function has(object: unknown, path: string): boolean {
  let value: unknown = object;
  for (const name of path.split('.')) {
    value = (value as Record<string, unknown> | null | undefined)?.[name];
  }
  return typeof value === 'object' && value !== null;
}

/** settingsOf returns the fields for a build configuration. */
export function settingsOf(object: LooseObject): Setting[] {
  return settings.filter(({ within }) => has(object, within));
}

/** changeTriggers contains the trigger types that have no URL. */
export const changeTriggers = ['ConfigChange', 'ImageChange'];

/** valuesOf returns the values of the fields, and of the triggers without a URL. */
export function valuesOf(object: LooseObject): Record<string, string> {
  const present = triggersOf(object).map(({ type }) => type);
  return Object.fromEntries([
    ...settingsOf(object).map(({ path, check }) => [path, at(object, path) || (check ? 'false' : '')]),
    ...changeTriggers.map((type) => [type, String(present.includes(type))]),
  ]) as Record<string, string>;
}

/**
 * changeOf returns the merge patch that sets changed values. The server rejects the patch if the
 * object has changed since it was read.
 */
export function changeOf(object: LooseObject, values: Record<string, string>): object {
  const before = valuesOf(object);
  const change: Record<string, unknown> = { metadata: { resourceVersion: object.metadata.resourceVersion } };
  for (const { path, check, isReference } of settingsOf(object)) {
    const value = values[path] ?? '';
    if (value !== before[path]) {
      set(change, path.split('.').slice(0, isReference && value === '' ? -1 : undefined), check ? value === 'true' : value === '' ? null : value);
    }
  }
  if (changeTriggers.some((type) => values[type] !== before[type])) {
    const kept = triggersOf(object).filter(({ type }) => !changeTriggers.includes(type) || values[type] === 'true');
    const added = changeTriggers.filter((type) => values[type] === 'true' && before[type] !== 'true').map((type) => (type === 'ImageChange' ? { type, imageChange: {} } : { type }));
    set(change, ['spec', 'triggers'], [...kept, ...added]);
  }
  return change;
}

function set(into: Record<string, unknown>, [first = '', ...rest]: string[], value: unknown): void {
  if (rest.length === 0) {
    into[first] = value;
    return;
  }
  into[first] ??= {};
  set(into[first] as Record<string, unknown>, rest, value);
}
