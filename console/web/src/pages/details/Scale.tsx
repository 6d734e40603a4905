import { NumberInput } from '@patternfly/react-core';
import { useState } from 'react';
import { merge } from '../../api/http';
import { text } from '../../text/en';
import { FormDialog } from '../../ui/FormDialog';

const t = text.workload;

/** Scale is the dialog for a workload's number of pods. */
export function Scale({ path, current, close }: { path: string; current: number; close: () => void }) {
  const [replicas, setReplicas] = useState(current);
  const set = (value: number) => setReplicas(Math.max(0, Number.isFinite(value) ? Math.floor(value) : 0));
  return (
    <FormDialog title={t.scale} action={t.scale} submit={() => merge(path + '/scale', { spec: { replicas } }).then(close)} close={close}>
      <NumberInput
        value={replicas}
        min={0}
        inputAriaLabel={t.replicas}
        minusBtnAriaLabel="-1"
        plusBtnAriaLabel="+1"
        onMinus={() => set(replicas - 1)}
        onPlus={() => set(replicas + 1)}
        onChange={(event) => set(Number((event.target as HTMLInputElement).value))}
      />
    </FormDialog>
  );
}
