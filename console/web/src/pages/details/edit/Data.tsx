import { decodeText, encode } from '../../../api/base64';
import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import { pairsOf, type Values } from '../../forms/model';
import { pairsProblem } from '../../forms/secret';
import type { DialogProps } from '../dialogs';
import { setField, type Edit } from './edit';
import { EditDialog } from './EditDialog';

const t = edits.data;

const dataOf = (object: LooseObject) => (object.data ?? {}) as Record<string, string>;

/** textOf returns a value as text, or undefined if it is binary. Values of secrets are encoded. */
const textOf = (object: LooseObject, value: string) => (object.kind === 'Secret' ? decodeText(value) : value);

/** binaryOf returns the values of an object that are not text. The form does not show them. */
const binaryOf = (object: LooseObject) => Object.entries(dataOf(object)).filter(([, value]) => textOf(object, value) === undefined);

function valuesOf(object: LooseObject): Values {
  const pairs = Object.entries(dataOf(object)).map(([key, value]) => [key, textOf(object, value)]);
  return { pairs: JSON.stringify(pairs.filter(([, shown]) => shown !== undefined)) };
}

/** data changes the text in a config map or secret. It keeps values that are not text. */
export const data: Edit = {
  title: t.action,
  sections: (object) => {
    const hidden = binaryOf(object).map(([key]) => key);
    const problem = (value: string) => pairsProblem(value) ?? (pairsOf(value).some(([key]) => hidden.includes(key)) ? t.isBinary(hidden) : undefined);
    return [{ title: '', help: hidden.length > 0 ? t.hidden(hidden) : undefined, inputs: [{ key: 'pairs', label: t.title, type: 'pairs', required: true, problem }] }];
  },
  values: valuesOf,
  operations: (object, values) => {
    if (values.pairs === valuesOf(object).pairs) {
      return [];
    }
    const written = pairsOf(values.pairs).map(([key, value]) => [key, object.kind === 'Secret' ? encode(value) : value]);
    return setField('/data', object.data, Object.fromEntries([...binaryOf(object), ...written]));
  },
};

/** Data is the dialog for the data of a config map or secret. */
export default function Data(props: DialogProps) {
  return <EditDialog edit={data} {...props} />;
}
