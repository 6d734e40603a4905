import { quantity } from '../../../api/quantity';
import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import type { Input, Values } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { isSame, partsOf, setField, type Edit, type Part } from './edit';
import { EditDialog } from './EditDialog';

const t = edits.resources;

type Field = keyof typeof t.fields;
type Resource = keyof typeof t.help;

interface Requirements {
  requests?: Record<string, string>;
  limits?: Record<string, string>;
}

const fields = Object.keys(t.fields) as Field[];

const splitField = (field: Field) => field.split('.') as [kind: 'requests' | 'limits', resource: Resource];

const partsOfWorkload = (object: LooseObject) => partsOf<Requirements>(object, ['resources']);

function inputsOf({ prefix }: Part<Requirements>): Input[] {
  return fields.map((field) => {
    const [kind, resource] = splitField(field);
    const problem = (value: string, values: Values) => {
      if (!(quantity(value) >= 0)) {
        return t.invalid[resource];
      }
      return kind === 'requests' && quantity(value) > quantity(values[`${prefix}limits.${resource}`]) ? t.overLimit : undefined;
    };
    return { key: prefix + field, label: t.fields[field], help: t.help[resource], problem };
  });
}

function valuesOf({ prefix, value }: Part<Requirements>): Values {
  return Object.fromEntries(
    fields.map((field) => {
      const [kind, resource] = splitField(field);
      return [prefix + field, String(value?.[kind]?.[resource] ?? '')];
    }),
  );
}

/**
 * requirementsOf returns the requests and limits with the given values. It keeps resources that the
 * form does not show, such as devices.
 */
function requirementsOf({ prefix, value }: Part<Requirements>, values: Values): Requirements {
  const next: Requirements = { ...value, requests: { ...value?.requests }, limits: { ...value?.limits } };
  for (const field of fields) {
    const [kind, resource] = splitField(field);
    const amount = values[prefix + field]?.trim();
    const { [resource]: _, ...others } = next[kind] ?? {};
    next[kind] = amount ? { ...others, [resource]: amount } : others;
  }
  return next;
}

/** resources changes the requests and limits of a workload's containers. */
export const resources: Edit = {
  title: t.action,
  sections: (object) => partsOfWorkload(object).map((part) => ({ title: t.of(part.container.name), inputs: inputsOf(part) })),
  values: (object) => Object.assign({}, ...partsOfWorkload(object).map(valuesOf)) as Values,
  operations: (object, values) =>
    partsOfWorkload(object)
      .filter((part) => !isSame(valuesOf(part), values))
      .flatMap((part) => setField(part.path, part.value, requirementsOf(part, values))),
};

/** Resources is the dialog for the requests and limits of a workload's containers. */
export default function Resources(props: DialogProps) {
  return <EditDialog edit={resources} {...props} />;
}
