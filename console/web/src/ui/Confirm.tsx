import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { text } from '../text/en';

interface ConfirmProps {
  title: string;
  body: string;
  action: string;
  /** typed must be typed before the action is possible. */
  typed?: string;
  run: () => Promise<unknown>;
  close: () => void;
}

/**
 * Confirm requests confirmation before an action that cannot be undone. A failure stays visible in
 * the dialog.
 */
export function Confirm({ title, body, action, typed, run, close }: ConfirmProps) {
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const [entered, setEntered] = useState('');
  const confirm = () => {
    setBusy(true);
    setError(undefined);
    run().then(close, (cause: Error) => {
      setError(cause);
      setBusy(false);
    });
  };
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="confirm-title" aria-describedby="confirm-body">
      <ModalHeader title={title} titleIconVariant="warning" labelId="confirm-title" />
      <ModalBody id="confirm-body">
        <p>{body}</p>
        {typed !== undefined && <TextInput aria-label={body} value={entered} onChange={(_, value) => setEntered(value)} autoComplete="off" />}
        {error && <Alert isInline variant="danger" title={error.message} />}
      </ModalBody>
      <ModalFooter>
        <Button variant="danger" onClick={confirm} isLoading={busy} isDisabled={busy || (typed !== undefined && entered !== typed)}>
          {action}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
