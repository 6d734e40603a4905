import { ActionGroup, Button, Form, FormGroup, FormHelperText, FormSelect, FormSelectOption, Grid, GridItem, HelperText, HelperTextItem, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { rolesOf, type RoleRef, type Subject, type SubjectKind } from '../../api/members';
import { text } from '../../text/en';

interface AddMemberProps {
  kind: SubjectKind;
  project: string;
  add: (subject: Subject, role: RoleRef) => Promise<void>;
}

/** AddMember is the form that grants a role to a subject. */
export function AddMember({ kind, project, add }: AddMemberProps) {
  const roles = useQuery({ queryKey: ['roles', project], queryFn: () => rolesOf(project) }).data ?? [];
  const [name, setName] = useState('');
  const [namespace, setNamespace] = useState(project);
  const [chosen, setChosen] = useState('ClusterRole view');
  const [busy, setBusy] = useState(false);
  const key = ({ kind: roleKind, name: roleName }: RoleRef) => `${roleKind} ${roleName}`;
  const role = roles.find(({ ref }) => key(ref) === chosen);
  const isComplete = role !== undefined && name.trim() !== '' && (kind !== 'ServiceAccount' || namespace.trim() !== '');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!role || !isComplete) {
      return;
    }
    setBusy(true);
    const subject: Subject = kind === 'ServiceAccount' ? { kind, name: name.trim(), namespace: namespace.trim() } : { kind, name: name.trim() };
    void add(subject, role.ref).then(() => {
      setBusy(false);
      setName('');
    });
  };
  return (
    <Form onSubmit={submit} aria-label={text.membership.add}>
      <Grid hasGutter md={kind === 'ServiceAccount' ? 4 : 6}>
        {kind === 'ServiceAccount' && (
          <GridItem>
            <FormGroup label={text.list.namespace} isRequired fieldId="member-project">
              <TextInput id="member-project" isRequired autoComplete="off" value={namespace} onChange={(_, value) => setNamespace(value)} />
            </FormGroup>
          </GridItem>
        )}
        <GridItem>
          <FormGroup label={text.name} isRequired fieldId="member-name">
            <TextInput id="member-name" isRequired autoComplete="off" value={name} onChange={(_, value) => setName(value)} />
          </FormGroup>
        </GridItem>
        <GridItem>
          <FormGroup label={text.membership.role} isRequired fieldId="member-role">
            <FormSelect id="member-role" value={chosen} aria-describedby="member-role-help" onChange={(_, value) => setChosen(value)}>
              {roles.map(({ ref }) => (
                <FormSelectOption key={key(ref)} value={key(ref)} label={ref.name} />
              ))}
            </FormSelect>
            <FormHelperText>
              <HelperText id="member-role-help">
                <HelperTextItem>{role?.description}</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
        </GridItem>
      </Grid>
      <ActionGroup>
        <Button type="submit" isDisabled={busy || !isComplete} isLoading={busy}>
          {text.membership.add}
        </Button>
      </ActionGroup>
    </Form>
  );
}
