import type { LooseObject } from '../../../api/types';
import { attach as t } from '../../../text/attach';
import { text } from '../../../text/en';
import { choicesOf, namesOf, present, type Input, type Values } from '../../forms/model';
import { containersOf, containersPath } from '../environment';
import type { Edit } from './edit';

/** collections maps the kinds of sources that a container can use to their collections. */
const collections: Record<string, string> = { claim: 'persistentvolumeclaims', configMap: 'configmaps', secret: 'secrets' };

interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName?: string };
  configMap?: { name?: string };
  secret?: { secretName?: string };
}

const isVolume = ({ source, use }: Values) => source === 'claim' || use === 'volume';

function inputsOf(object: LooseObject): Input[] {
  return [
    { key: 'source', label: t.source, type: 'select', choices: choicesOf(t.sources) },
    ...Object.entries(collections).map(
      ([source, collection]): Input => ({
        key: source,
        label: t.sources[source] ?? source,
        type: 'select',
        required: true,
        choices: [{ value: '', label: text.forms.route.choose }],
        source: namesOf(collection),
        isShown: (values) => values.source === source,
      }),
    ),
    { key: 'use', label: t.use, type: 'select', choices: choicesOf(t.uses), isShown: ({ source }) => source !== 'claim' },
    { key: 'path', label: t.path, required: true, help: t.pathHelp, isShown: isVolume, problem: (value) => (/^\/[^:]*$/.test(value) ? undefined : t.pathInvalid) },
    { key: 'access', label: t.access, type: 'select', choices: choicesOf(t.accesses), isShown: ({ source }) => source === 'claim' },
    { key: 'prefix', label: t.prefix, help: t.prefixHelp, isShown: (values) => !isVolume(values), problem: (value) => (/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(value) ? undefined : t.prefixInvalid) },
    { key: 'container', label: t.containers, type: 'select', choices: [{ value: '', label: t.allContainers }, ...containersOf(object).map(({ name }) => ({ value: name, label: name }))] },
  ];
}

/**
 * appended returns the JSON patch operation that appends a value to a list, which might not exist.
 */
export function appended(path: string, list: unknown, value: object): object {
  return Array.isArray(list) ? { op: 'add', path: `${path}/-`, value } : { op: 'add', path, value: [value] };
}

/** volumeOf returns a source's volume without its name. */
function volumeOf(source: string, name: string): Omit<Volume, 'name'> {
  switch (source) {
    case 'claim':
      return { persistentVolumeClaim: { claimName: name } };
    case 'configMap':
      return { configMap: { name } };
    default:
      return { secret: { secretName: name } };
  }
}

/** nameOfVolume returns an unused volume name that begins with the source's name. */
function nameOfVolume(source: string, volumes: Volume[]): string {
  const base = source.replaceAll('.', '-').slice(0, 58).replace(/-+$/, '');
  for (let n = 1; ; n++) {
    const name = n === 1 ? base : `${base}-${n}`;
    if (!volumes.some((volume) => volume.name === name)) {
      return name;
    }
  }
}

/**
 * isOf reports whether a volume has the given source and no other settings, such as a selection of
 * keys.
 */
function isOf(volume: Volume, source: Omit<Volume, 'name'>): boolean {
  const { name: _, ...rest } = volume;
  const plain = JSON.parse(JSON.stringify(rest)) as { configMap?: { defaultMode?: number }; secret?: { defaultMode?: number } };
  delete plain.configMap?.defaultMode;
  delete plain.secret?.defaultMode;
  return JSON.stringify(plain) === JSON.stringify(source);
}

function operationsOf(object: LooseObject, values: Values): object[] {
  const { source = '', path: mountPath = '', prefix = '' } = values;
  const name = values[source] ?? '';
  const root = '/' + containersPath(object.kind).join('/');
  const wanted = containersOf(object).flatMap((container, index) => (values.container === '' || values.container === container.name ? [{ container, index }] : []));
  const operations: object[] = [];
  if (!isVolume(values)) {
    const from = { ...present({ prefix }), [source === 'secret' ? 'secretRef' : 'configMapRef']: { name } };
    return wanted.map(({ container, index }) => appended(`${root}/${index}/envFrom`, (container as { envFrom?: unknown }).envFrom, from));
  }
  const above = containersPath(object.kind).slice(0, -1);
  const pod = above.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object) as { volumes?: Volume[] };
  const content = volumeOf(source, name);
  let volume = (pod.volumes ?? []).find((candidate) => isOf(candidate, content));
  if (!volume) {
    volume = { name: nameOfVolume(name, pod.volumes ?? []), ...content };
    operations.push(appended(`/${above.join('/')}/volumes`, pod.volumes, volume));
  }
  const mount = { name: volume.name, mountPath, ...(source === 'claim' && values.access === 'readOnly' ? { readOnly: true } : {}) };
  return [...operations, ...wanted.map(({ container, index }) => appended(`${root}/${index}/volumeMounts`, (container as { volumeMounts?: unknown }).volumeMounts, mount))];
}

const untouched: Values = { source: 'claim', claim: '', configMap: '', secret: '', use: 'volume', path: '', access: '', prefix: '', container: '' };

/**
 * attachTo adds a claim, a config map or a secret to a workload's containers. preset contains the
 * form's initial values.
 */
export function attachTo(preset: Values = {}): Edit {
  return {
    title: t.action,
    sections: (object) => [{ title: t.title, inputs: inputsOf(object) }],
    values: () => ({ ...untouched, ...preset }),
    operations: operationsOf,
  };
}
