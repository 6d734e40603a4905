import { Button, FormGroup, FormSelect, FormSelectOption, InputGroup, InputGroupItem } from '@patternfly/react-core';
import { useState } from 'react';
import { usePermission, useProjects } from '../../api/projects';
import { text } from '../../text/en';
import { CreateProject } from '../CreateProject';

/** ProjectField selects the project for new objects, or creates a project. */
export function ProjectField({ project, setProject }: { project: string; setProject: (name: string) => void }) {
  const { items, loaded } = useProjects();
  const { mayRequest, refusal } = usePermission();
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
        {mayRequest && (
          <InputGroupItem>
            <Button variant="control" onClick={() => setCreating(true)}>
              {text.projects.create}
            </Button>
          </InputGroupItem>
        )}
      </InputGroup>
      {refusal !== undefined && loaded && names.length === 0 && <p className="console-message">{refusal}</p>}
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
