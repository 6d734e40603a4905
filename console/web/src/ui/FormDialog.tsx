import { Button, Form, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useId, type FormEvent, type ReactNode } from 'react';
import { text } from '../text/en';
import { Outcome } from './Outcome';
import { useRequest } from './useRequest';

interface FormDialogProps {
  title: string;
  /** body describes the dialog's effect. */
  body?: string;
  /** action is the label of the button that submits the form. */
  action: string;
  /**
   * submit performs the dialog's action. If it fails, the dialog shows the error and stays open.
   */
  submit: () => Promise<unknown>;
  close: () => void;
  isReady?: boolean;
  /** isDanger means that the action destroys data. */
  isDanger?: boolean;
  variant?: 'small' | 'medium';
  children?: ReactNode;
}

/** FormDialog is a dialog with a form. It sends one request at a time. */
export function FormDialog({ title, body, action, submit, close, isReady = true, isDanger = false, variant = 'small', children }: FormDialogProps) {
  const id = useId();
  const { isBusy, error, send } = useRequest();
  const canSubmit = isReady && !isBusy;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    // Stop the event here. Otherwise, React would also pass it to the form of the page that opened
    // the dialog.
    event.stopPropagation();
    if (canSubmit) {
      send(submit);
    }
  };
  return (
    <Modal variant={variant} isOpen onClose={close} aria-labelledby={`${id}-title`} aria-describedby={body === undefined ? undefined : `${id}-body`}>
      <ModalHeader title={title} titleIconVariant={isDanger ? 'warning' : undefined} labelId={`${id}-title`} />
      <ModalBody>
        <Form id={id} onSubmit={onSubmit}>
          {body !== undefined && <p id={`${id}-body`}>{body}</p>}
          {children}
          <Outcome error={error} />
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={id} variant={isDanger ? 'danger' : 'primary'} isLoading={isBusy} isDisabled={!canSubmit}>
          {action}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
