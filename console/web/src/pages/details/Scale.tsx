import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader, NumberInput } from '@patternfly/react-core';
import { useState } from 'react';
import { merge } from '../../api/http';
import { text } from '../../text/en';

/** Scale is the dialog for the number of pods. */
export function Scale({ path, current, close }: { path: string; current: number; close: () => void }) {
  const [replicas, setReplicas] = useState(current);
  const [error, setError] = useState<Error>();
  const set = (value: number) => setReplicas(Math.max(0, Number.isFinite(value) ? Math.floor(value) : 0));
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="scale-title">
      <ModalHeader title={text.workload.scale} labelId="scale-title" />
      <ModalBody>
        <NumberInput
          value={replicas}
          min={0}
          inputAriaLabel={text.workload.replicas}
          minusBtnAriaLabel="-1"
          plusBtnAriaLabel="+1"
          onMinus={() => set(replicas - 1)}
          onPlus={() => set(replicas + 1)}
          onChange={(event) => set(Number((event.target as HTMLInputElement).value))}
        />
        {error && <Alert isInline variant="danger" title={error.message} />}
      </ModalBody>
      <ModalFooter>
        <Button onClick={() => void merge(path + '/scale', { spec: { replicas } }).then(close, setError)}>{text.workload.scale}</Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
