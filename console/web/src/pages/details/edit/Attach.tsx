import type { DialogProps } from '../dialogs';
import { attachTo } from './attachment';
import { EditDialog } from './EditDialog';

const attach = attachTo();

/** Attach is the dialog that adds storage or configuration to a workload. */
export default function Attach(props: DialogProps) {
  return <EditDialog edit={attach} {...props} />;
}
