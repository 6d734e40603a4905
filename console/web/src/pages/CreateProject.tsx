import { Alert, Button, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, Modal, ModalBody, ModalFooter, ModalHeader, TextArea, TextInput } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { requestProject, validName } from '../api/projects';
import { text } from '../text/en';

/** CreateProject is the dialog for a new project. created gets its name. */
export function CreateProject({ created, close }: { created: (name: string) => void; close: () => void }) {
  const [name, setName] = useState('');
  const [title, setTitle] = useState('');
  const [about, setAbout] = useState('');
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const invalid = name !== '' && !validName(name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!validName(name)) {
      return;
    }
    setBusy(true);
    setError(undefined);
    requestProject(name, title, about).then(
      () => created(name),
      (cause: Error) => {
        setError(cause);
        setBusy(false);
      },
    );
  };
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="create-project-title">
      <ModalHeader title={text.projects.create} labelId="create-project-title" />
      <ModalBody>
        <Form id="create-project" onSubmit={submit}>
          <FormGroup label={text.name} isRequired fieldId="project-name">
            <TextInput
              id="project-name"
              isRequired
              autoFocus
              autoComplete="off"
              value={name}
              validated={invalid ? 'error' : 'default'}
              aria-describedby="project-name-help"
              onChange={(_, value) => setName(value)}
            />
            <FormHelperText>
              <HelperText id="project-name-help">
                <HelperTextItem variant={invalid ? 'error' : 'default'}>{invalid ? text.projects.nameInvalid : text.projects.nameHelp}</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
          <FormGroup label={text.projects.displayName} fieldId="project-title">
            <TextInput id="project-title" value={title} onChange={(_, value) => setTitle(value)} />
          </FormGroup>
          <FormGroup label={text.projects.description} fieldId="project-about">
            <TextArea id="project-about" value={about} resizeOrientation="vertical" onChange={(_, value) => setAbout(value)} />
          </FormGroup>
          {error && <Alert isInline variant="danger" title={error.message} />}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="create-project" isLoading={busy} isDisabled={busy || !validName(name)}>
          {text.create}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
