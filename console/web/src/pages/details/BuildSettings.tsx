import { ActionGroup, Button, Checkbox, Form, FormGroup, TextInput } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { pathOf } from '../../api/discovery';
import { useRights } from '../../api/hooks';
import { merge } from '../../api/http';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import { changeOf, changeTriggers, settingsOf, valuesOf } from './buildConfig';
import type { TabProps } from './tabs';

const t = text.builds;

/**
 * BuildSettings is the tab that edits a build configuration's source, strategy, output and
 * triggers.
 */
export default function BuildSettings({ resource, project, object }: TabProps) {
  const rights = useRights(project);
  const [edit, setEdit] = useState<{ base: LooseObject; values: Record<string, string> }>();
  const { isBusy, isDone, error, send, reset } = useRequest();
  const { base, values } = edit ?? { base: object, values: valuesOf(object) };
  const mayPatch = rights.may('patch', resource.group, resource.name, object.metadata.name);
  const set = (path: string, value: string) => {
    setEdit({ base, values: { ...values, [path]: value } });
    reset();
  };
  const save = (event: FormEvent) => {
    event.preventDefault();
    send(() => merge(pathOf(resource, project, object.metadata.name), changeOf(base, values)).then(() => setEdit(undefined)));
  };
  return (
    <Form isWidthLimited onSubmit={save}>
      {settingsOf(base).map(({ path, label, check }) =>
        check ? (
          <Checkbox key={path} id={path} label={label} isDisabled={!mayPatch} isChecked={values[path] === 'true'} onChange={(_, checked) => set(path, String(checked))} />
        ) : (
          <FormGroup key={path} label={label} fieldId={path}>
            <TextInput id={path} autoComplete="off" readOnlyVariant={mayPatch ? undefined : 'default'} value={values[path]} onChange={(_, value) => set(path, value)} />
          </FormGroup>
        ),
      )}
      {changeTriggers.map((type) => (
        <Checkbox key={type} id={type} label={t.triggers[type]} isDisabled={!mayPatch} isChecked={values[type] === 'true'} onChange={(_, checked) => set(type, String(checked))} />
      ))}
      <Outcome error={error} isDone={isDone} done={text.editor.saved} />
      {mayPatch && (
        <ActionGroup>
          <Button type="submit" isLoading={isBusy} isDisabled={isBusy || edit === undefined}>
            {text.save}
          </Button>
          <Button variant="link" isDisabled={edit === undefined} onClick={() => setEdit(undefined)}>
            {text.editor.reload}
          </Button>
        </ActionGroup>
      )}
    </Form>
  );
}
