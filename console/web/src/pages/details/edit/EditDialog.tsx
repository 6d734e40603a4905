import { Alert, Button, Form, FormSection, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { patch, unchanged } from '../../../api/http';
import { text } from '../../../text/en';
import { InputField } from '../../forms/InputField';
import { isComplete, shownInputs } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { isSame, type Edit } from './edit';

/** formID connects the button in the footer with the form. */
const formID = 'edit-form';

/**
 * EditDialog changes an object by a form. The server rejects the change if the edited parts of the
 * object have changed since the dialog was opened.
 */
export function EditDialog({ edit, object, path, close }: DialogProps & { edit: Edit }) {
  const [base] = useState(object);
  const [initial] = useState(() => edit.values(base));
  const [values, setValues] = useState(initial);
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const sections = edit.sections(base);
  const current = edit.values(object);
  const hasChanged = !isSame(initial, current) || !isSame(current, initial);
  const isReady = !busy && !isSame(initial, values) && sections.every((section) => isComplete(section, values));
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) {
      return;
    }
    setBusy(true);
    setError(undefined);
    // Only changes of the edited parts are conflicts, not changes of the replicas.
    const from = hasChanged ? base : object;
    patch(path, [unchanged(from), ...edit.operations(from, values)]).then(close, (cause: Error) => {
      setError(cause);
      setBusy(false);
    });
  };
  return (
    <Modal variant="medium" isOpen onClose={close} aria-labelledby="edit-title">
      <ModalHeader title={edit.title} labelId="edit-title" />
      <ModalBody>
        <Form id={formID} onSubmit={save}>
          {sections.filter((section) => shownInputs(section, values).length > 0).map((section) => (
            <FormSection key={section.title} title={section.title} titleElement="h2">
              {section.help && <p>{section.help}</p>}
              {shownInputs(section, values).map((input) => (
                <InputField key={input.key} input={input} project={object.metadata.namespace ?? ''} values={values} change={(value) => setValues({ ...values, [input.key]: value })} />
              ))}
            </FormSection>
          ))}
        </Form>
        {hasChanged && <Alert isInline variant="warning" isLiveRegion title={text.editor.changed} />}
        {error && <Alert isInline variant="danger" isLiveRegion title={error.message} />}
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form={formID} isDisabled={!isReady} isLoading={busy}>
          {text.save}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
