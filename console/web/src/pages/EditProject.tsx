import { TextArea, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useRights } from '../api/hooks';
import { describeProject, description, displayName, type Project } from '../api/projects';
import { text } from '../text/en';
import { Field } from '../ui/Field';
import { FormDialog } from '../ui/FormDialog';

/** EditProject is the dialog for a project's display name and description. */
export default function EditProject({ project, close }: { project: Project; close: () => void }) {
  const { name } = project.metadata;
  const [title, setTitle] = useState(displayName(project));
  const [about, setAbout] = useState(description(project));
  const mayEdit = useRights(name).may('patch', 'project.openshift.io', 'projects', name);
  const isReady = mayEdit && (title !== displayName(project) || about !== description(project));
  return (
    <FormDialog title={`${text.projects.edit} ${name}`} action={text.save} isReady={isReady} submit={() => describeProject(name, title, about).then(close)} close={close}>
      <Field id="project-display-name" label={text.projects.displayName}>
        <TextInput id="project-display-name" autoFocus autoComplete="off" value={title} onChange={(_, value) => setTitle(value)} />
      </Field>
      <Field id="project-description" label={text.projects.description}>
        <TextArea id="project-description" value={about} resizeOrientation="vertical" onChange={(_, value) => setAbout(value)} />
      </Field>
    </FormDialog>
  );
}
