import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import { choicesOf, type Values } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { containersOf } from '../environment';
import { setField, type Edit, type Section } from './edit';
import { EditDialog } from './EditDialog';

const t = edits.triggers;

interface ImageChange {
  automatic?: boolean;
  containerNames?: string[];
  from?: { kind?: string; name?: string; namespace?: string };
}

interface Trigger {
  type: string;
  imageChangeParams?: ImageChange;
}

const triggersOf = (object: LooseObject) => (object.spec as { triggers?: Trigger[] }).triggers ?? [];

const choices = choicesOf(t.starts);

const tagPattern = /^([a-z0-9][a-z0-9-]*\/)?[\w][\w.-]*:[\w][\w.-]*$/;

const yes = (condition: boolean | undefined) => (condition ? 'yes' : 'no');

function valuesOf(object: LooseObject): Values {
  const triggers = triggersOf(object);
  const images = containersOf(object).map(({ name }, index) => {
    const change = triggers.find(({ imageChangeParams }) => imageChangeParams?.containerNames?.includes(name))?.imageChangeParams;
    const tag = change?.from?.name ? `${change.from.namespace ? change.from.namespace + '/' : ''}${change.from.name}` : '';
    return { [`tag${index}`]: tag, [`automatic${index}`]: yes(change === undefined || change.automatic) };
  });
  return Object.assign({ config: yes(triggers.some(({ type }) => type === 'ConfigChange')) }, ...images) as Values;
}

function sectionOf(container: string, index: number): Section {
  return {
    title: t.of(container),
    inputs: [
      { key: `tag${index}`, label: t.tag, help: t.tagHelp, problem: (value) => (tagPattern.test(value) ? undefined : t.tagInvalid) },
      { key: `automatic${index}`, label: t.automatic, type: 'select', choices, isShown: (values) => values[`tag${index}`] !== '' },
    ],
  };
}

/**
 * changeOf returns a list with the image change trigger of a container. The list is empty if no tag
 * is selected for the container.
 */
function changeOf(container: string, index: number, values: Values): Trigger[] {
  const tag = values[`tag${index}`] ?? '';
  if (tag === '') {
    return [];
  }
  const [name = '', namespace] = tag.split('/').reverse();
  const from = { kind: 'ImageStreamTag', name, ...(namespace !== undefined && { namespace }) };
  return [{ type: 'ImageChange', imageChangeParams: { automatic: values[`automatic${index}`] === 'yes', containerNames: [container], from } }];
}

/** triggersWith returns the triggers for the values. It keeps the triggers of other containers. */
function triggersWith(object: LooseObject, values: Values): Trigger[] {
  const before = valuesOf(object);
  const changed = containersOf(object).flatMap(({ name }, index) => (['tag', 'automatic'].some((key) => values[key + index] !== before[key + index]) ? [{ name, index }] : []));
  const kept = triggersOf(object).flatMap((trigger): Trigger[] => {
    const { imageChangeParams: change, type } = trigger;
    if (type === 'ConfigChange') {
      return [];
    }
    const names = change?.containerNames?.filter((name) => !changed.some((container) => container.name === name));
    return change && names?.length !== change.containerNames?.length ? (names?.length ? [{ type, imageChangeParams: { ...change, containerNames: names } }] : []) : [trigger];
  });
  return [...(values.config === 'yes' ? [{ type: 'ConfigChange' }] : []), ...kept, ...changed.flatMap(({ name, index }) => changeOf(name, index, values))];
}

/** triggers changes the triggers that start a deployment. */
export const triggers: Edit = {
  title: t.action,
  sections: (object) => [{ title: t.title, inputs: [{ key: 'config', label: t.config, type: 'select', choices }] }, ...containersOf(object).map(({ name }, index) => sectionOf(name, index))],
  values: valuesOf,
  operations: (object, values) => setField('/spec/triggers', triggersOf(object), triggersWith(object, values)),
};

/** Triggers is the dialog for a deployment configuration's triggers. */
export default function Triggers(props: DialogProps) {
  return <EditDialog edit={triggers} {...props} />;
}
