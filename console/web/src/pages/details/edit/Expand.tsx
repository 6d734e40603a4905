import { quantity } from '../../../api/quantity';
import type { LooseObject } from '../../../api/types';
import { attach } from '../../../text/attach';
import type { DialogProps } from '../dialogs';
import { setField, type Edit } from './edit';
import { EditDialog } from './EditDialog';

const t = attach.expand;

const sizeOf = (claim: LooseObject) => (claim.spec as { resources?: { requests?: { storage?: string } } }).resources?.requests?.storage ?? '';

/** expand requests more storage for a claim. */
export const expand: Edit = {
  title: t.action,
  sections: (claim) => {
    const size = sizeOf(claim);
    const problem = (value: string) => (value === size || quantity(value) > quantity(size) ? undefined : t.invalid(size));
    return [{ title: t.title, inputs: [{ key: 'size', label: t.size, required: true, help: t.help(size), problem }] }];
  },
  values: (claim) => ({ size: sizeOf(claim) }),
  operations: (claim, { size }) => (size === sizeOf(claim) ? [] : setField('/spec/resources/requests/storage', sizeOf(claim), size)),
};

/** Expand is the dialog for a claim's size. */
export default function Expand(props: DialogProps) {
  return <EditDialog edit={expand} {...props} />;
}
