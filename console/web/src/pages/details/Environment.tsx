import { ActionGroup, Alert, Button, Form, Grid, GridItem, TextInput, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { pathOf } from '../../api/discovery';
import { useRights } from '../../api/hooks';
import { latest, patch } from '../../api/http';
import { text } from '../../text/en';
import { ContainerSelect } from '../../ui/ContainerSelect';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import { useRowFocus } from '../../ui/useRowFocus';
import { describe, isValid, partsOf, patchOf, variablesOf, type Variable } from './environment';
import type { TabProps } from './tabs';

/**
 * Environment is the tab with the environment variables of a workload's containers or of a build
 * configuration.
 */
export default function Environment(props: TabProps) {
  const parts = partsOf(props.object);
  const [name, setName] = useState(parts[0]?.name);
  const index = parts.findIndex((part) => part.name === name);
  return (
    <>
      {parts.length > 1 && (
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <ContainerSelect containers={parts.map((part) => part.name)} value={name} onChange={setName} />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
      )}
      {index >= 0 && <Variables key={name} {...props} index={index} />}
    </>
  );
}

function Variables({ resource, project, object, index }: TabProps & { index: number }) {
  const rights = useRights(project);
  const [base, setBase] = useState(object);
  const newest = latest(object, base);
  const part = partsOf(newest)[index];
  const current = variablesOf(part);
  const [edited, setEdited] = useState<Variable[]>();
  const { isBusy, isDone, error, send, reset } = useRequest();
  const mayPatch = rights.may('patch', resource.group, resource.name, object.metadata.name);
  const variables = edited ?? current;
  const rows = variables.length === 0 && mayPatch ? [{ name: '', value: '' }] : variables;
  const hasChanged = edited !== undefined && JSON.stringify(current) !== JSON.stringify(variablesOf(partsOf(base)[index]));
  const edit = (next: Variable[]) => {
    if (edited === undefined) {
      setBase(newest);
    }
    setEdited(next);
    reset();
  };
  const focus = useRowFocus<HTMLInputElement>();
  const set = (at: number, part: Partial<Variable>) => edit(rows.map((row, i) => (i === at ? { ...row, ...part } : row)));
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (!part) {
      return;
    }
    // A concurrent change to the environment is a conflict. A change to the number of replicas is
    // not.
    send(async () => {
      setBase(await patch<typeof object>(pathOf(resource, project, object.metadata.name), patchOf(hasChanged ? base : newest, part, variables)));
      setEdited(undefined);
    });
  };
  return (
    <Form onSubmit={save}>
      {rows.map((variable, at) => (
        <Grid hasGutter md={4} key={at}>
          <GridItem>
            <TextInput ref={focus.first(at)} aria-label={text.environment.name(at + 1)} placeholder={text.name} autoComplete="off" readOnlyVariant={mayPatch ? undefined : 'default'} value={variable.name} onChange={(_, name) => set(at, { name })} />
          </GridItem>
          <GridItem>
            <TextInput
              aria-label={text.environment.value(at + 1)}
              placeholder={text.forms.value}
              autoComplete="off"
              readOnlyVariant={mayPatch && !variable.reference ? undefined : 'default'}
              value={variable.reference ? describe(variable.reference) : variable.value}
              onChange={(_, value) => set(at, { value })}
            />
          </GridItem>
          {mayPatch && variables.length > 0 && (
            <GridItem>
              <Button
                variant="link"
                onClick={() => {
                  focus.leave(at, rows.length);
                  edit(variables.filter((_, i) => i !== at));
                }}
              >
                {text.environment.remove(at + 1)}
              </Button>
            </GridItem>
          )}
        </Grid>
      ))}
      {rows.length === 0 && <p>{text.none}</p>}
      {edited && edited.length > 0 && !isValid(edited) && <Alert isInline component="h2" variant="warning" title={text.environment.invalid} />}
      {hasChanged && <Alert isInline component="h2" variant="warning" isLiveRegion title={text.editor.changed} />}
      <Outcome error={error} isDone={isDone} done={text.editor.saved} />
      {mayPatch && (
        <ActionGroup>
          <Button type="submit" isLoading={isBusy} isDisabled={isBusy || edited === undefined || !isValid(edited)}>
            {text.save}
          </Button>
          <Button variant="secondary" onClick={() => edit([...variables, { name: '', value: '' }])}>
            {text.environment.add}
          </Button>
          <Button
            variant="link"
            isDisabled={edited === undefined}
            onClick={() => {
              setEdited(undefined);
              reset();
            }}
          >
            {text.editor.reload}
          </Button>
        </ActionGroup>
      )}
    </Form>
  );
}
