import { TextArea, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { requestProject, validName } from '../api/projects';
import { text } from '../text/en';
import { Field } from '../ui/Field';
import { FormDialog } from '../ui/FormDialog';

const t = text.projects;

/** CreateProject is the dialog for a new project. It calls created with the project's name. */
export function CreateProject({ created, close }: { created: (name: string) => void; close: () => void }) {
  const [name, setName] = useState('');
  const [title, setTitle] = useState('');
  const [about, setAbout] = useState('');
  const invalid = name !== '' && !validName(name) ? t.nameInvalid : undefined;
  const submit = () => requestProject(name, title, about).then(() => created(name));
  return (
    <FormDialog title={t.create} action={text.create} isReady={validName(name)} submit={submit} close={close}>
      <Field id="project-name" label={text.name} required invalid={invalid} help={t.nameHelp}>
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
      </Field>
      <Field id="project-title" label={t.displayName}>
        <TextInput id="project-title" value={title} onChange={(_, value) => setTitle(value)} />
      </Field>
      <Field id="project-about" label={t.description}>
        <TextArea id="project-about" value={about} resizeOrientation="vertical" onChange={(_, value) => setAbout(value)} />
      </Field>
    </FormDialog>
  );
}
