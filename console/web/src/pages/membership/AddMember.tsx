import { ActionGroup, Button, Form, FormSelect, FormSelectOption, Grid, GridItem, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { rolesOf, type RoleRef, type Subject, type SubjectKind } from '../../api/members';
import { listedRoles } from '../../app/constants';
import { text } from '../../text/en';
import { Field } from '../../ui/Field';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';

interface AddMemberProps {
  kind: SubjectKind;
  project: string;
  add: (subject: Subject, role: RoleRef) => Promise<void>;
}

/** AddMember is the form that grants a role to a subject. */
export function AddMember({ kind, project, add }: AddMemberProps) {
  const roles = useQuery({ queryKey: ['roles', project], queryFn: () => rolesOf(project, listedRoles()) }).data ?? [];
  const [name, setName] = useState('');
  const [namespace, setNamespace] = useState(project);
  const [chosen, setChosen] = useState('ClusterRole view');
  const { isBusy, error, send } = useRequest();
  const key = ({ kind: roleKind, name: roleName }: RoleRef) => `${roleKind} ${roleName}`;
  const role = roles.find(({ ref }) => key(ref) === chosen);
  const isComplete = role !== undefined && name.trim() !== '' && (kind !== 'ServiceAccount' || namespace.trim() !== '');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!role || !isComplete) {
      return;
    }
    const subject: Subject = kind === 'ServiceAccount' ? { kind, name: name.trim(), namespace: namespace.trim() } : { kind, name: name.trim() };
    send(() => add(subject, role.ref).then(() => setName('')));
  };
  return (
    <Form onSubmit={submit} aria-label={text.membership.add}>
      <Grid hasGutter md={kind === 'ServiceAccount' ? 4 : 6}>
        {kind === 'ServiceAccount' && (
          <GridItem>
            <Field id="member-project" label={text.list.namespace} required>
              <TextInput id="member-project" isRequired autoComplete="off" value={namespace} onChange={(_, value) => setNamespace(value)} />
            </Field>
          </GridItem>
        )}
        <GridItem>
          <Field id="member-name" label={text.name} required>
            <TextInput id="member-name" isRequired autoComplete="off" value={name} onChange={(_, value) => setName(value)} />
          </Field>
        </GridItem>
        <GridItem>
          <Field id="member-role" label={text.membership.role} required help={role?.description}>
            <FormSelect id="member-role" value={chosen} aria-describedby="member-role-help" onChange={(_, value) => setChosen(value)}>
              {roles.map(({ ref }) => (
                <FormSelectOption key={key(ref)} value={key(ref)} label={ref.name} />
              ))}
            </FormSelect>
          </Field>
        </GridItem>
      </Grid>
      <Outcome error={error} />
      <ActionGroup>
        <Button type="submit" isDisabled={isBusy || !isComplete} isLoading={isBusy}>
          {text.membership.add}
        </Button>
      </ActionGroup>
    </Form>
  );
}
