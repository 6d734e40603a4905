import { Alert, Button, Form, FormGroup, Modal, ModalBody, ModalFooter, ModalHeader, TextArea, TextInput } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { useRights } from '../api/hooks';
import { describeProject, description, displayName, type Project } from '../api/projects';
import { text } from '../text/en';

/** EditProject is the dialog for the display name and the description of a project. */
export default function EditProject({ project, close }: { project: Project; close: () => void }) {
  const { name } = project.metadata;
  const [title, setTitle] = useState(displayName(project));
  const [about, setAbout] = useState(description(project));
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const mayEdit = useRights(name).may('patch', 'project.openshift.io', 'projects', name);
  const isReady = mayEdit && !busy && (title !== displayName(project) || about !== description(project));
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) {
      return;
    }
    setBusy(true);
    setError(undefined);
    describeProject(name, title, about).then(close, (cause: Error) => {
      setError(cause);
      setBusy(false);
    });
  };
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="edit-project-title">
      <ModalHeader title={`${text.projects.edit} ${name}`} labelId="edit-project-title" />
      <ModalBody>
        <Form id="edit-project" onSubmit={save}>
          <FormGroup label={text.projects.displayName} fieldId="project-display-name">
            <TextInput id="project-display-name" autoFocus autoComplete="off" value={title} onChange={(_, value) => setTitle(value)} />
          </FormGroup>
          <FormGroup label={text.projects.description} fieldId="project-description">
            <TextArea id="project-description" value={about} resizeOrientation="vertical" onChange={(_, value) => setAbout(value)} />
          </FormGroup>
          {error && <Alert isInline isLiveRegion variant="danger" title={error.message} />}
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="edit-project" isDisabled={!isReady} isLoading={busy}>
          {text.save}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
