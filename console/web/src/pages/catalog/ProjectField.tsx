import { Button, FormGroup, FormSelect, FormSelectOption, InputGroup, InputGroupItem } from '@patternfly/react-core';
import { useState } from 'react';
import { useRights } from '../../api/hooks';
import { useProjects } from '../../api/projects';
import { text } from '../../text/en';
import { CreateProject } from '../CreateProject';

/** ProjectField selects the project for new objects, or creates a project. */
export function ProjectField({ project, setProject }: { project: string; setProject: (name: string) => void }) {
  const { items } = useProjects();
  const rights = useRights(undefined);
  const [creating, setCreating] = useState(false);
  const names = items.map((item) => item.metadata.name);
  return (
    <FormGroup label={text.list.namespace} fieldId="field-project" isRequired>
      <InputGroup>
        <InputGroupItem isFill>
          <FormSelect id="field-project" value={names.includes(project) ? project : ''} onChange={(_, name) => setProject(name)}>
            <FormSelectOption value="" label={text.masthead.selectProject} isDisabled isPlaceholder />
            {names.map((name) => (
              <FormSelectOption key={name} value={name} label={name} />
            ))}
          </FormSelect>
        </InputGroupItem>
        {rights.may('create', 'project.openshift.io', 'projectrequests') && (
          <InputGroupItem>
            <Button variant="control" onClick={() => setCreating(true)}>
              {text.projects.create}
            </Button>
          </InputGroupItem>
        )}
      </InputGroup>
      {creating && (
        <CreateProject
          close={() => setCreating(false)}
          created={(name) => {
            setProject(name);
            setCreating(false);
          }}
        />
      )}
    </FormGroup>
  );
}
