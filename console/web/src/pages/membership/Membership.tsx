import { EmptyState, Label, LabelGroup, PageSection, Tab, Tabs, TabTitleText, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import { useObjects, useRights, useUser } from '../../api/hooks';
import { addRole, bindingsPath, membersOf, removeRole, type Member, type RoleBinding, type RoleRef, type Subject, type SubjectKind } from '../../api/members';
import { text } from '../../text/en';
import { Confirm } from '../../ui/Confirm';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { AddMember } from './AddMember';

const kinds: SubjectKind[] = ['User', 'Group', 'ServiceAccount'];
const panelID = 'members';

/** Component shows and changes the roles of subjects in a project. */
export function Component() {
  const { project = '' } = useParams();
  useTitle(text.membership.title, project);
  const bindings = useObjects<RoleBinding>(bindingsPath(project));
  const rights = useRights(project);
  const user = useUser();
  const [kind, setKind] = useState<SubjectKind>('User');
  const [removing, setRemoving] = useState<{ subject: Subject; role: RoleRef }>();
  if (bindings.error && !bindings.loaded) {
    return <Failure error={bindings.error} project={project} />;
  }
  const members = membersOf(bindings.items, project);
  const may = (verb: string) => rights.may(verb, 'rbac.authorization.k8s.io', 'rolebindings');
  const mayChange = may('create') && may('update') && may('delete');
  const shown = members.filter(({ subject }) => subject.kind === kind);
  const isOwn = removing?.subject.kind === 'User' && removing.subject.name === user?.metadata.name;
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.membership.title}</Title>
        <Interrupted snapshots={[bindings]} />
      </PageSection>
      <PageSection type="tabs">
        <Tabs activeKey={kind} onSelect={(_, key) => setKind(key as SubjectKind)} usePageInsets aria-label={text.membership.title}>
          {kinds.map((key) => (
            <Tab
              key={key}
              eventKey={key}
              tabContentId={panelID}
              title={<TabTitleText>{text.membership.count(text.membership.kinds[key], members.filter((m) => m.subject.kind === key).length)}</TabTitleText>}
            />
          ))}
        </Tabs>
      </PageSection>
      <PageSection isFilled id={panelID} role="tabpanel" aria-label={text.membership.kinds[kind]}>
        {!bindings.loaded ? (
          <Loading />
        ) : shown.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={text.membership.empty} />
        ) : (
          <Members label={text.membership.kinds[kind]} members={shown} remove={mayChange ? setRemoving : undefined} />
        )}
        {rights.may('create', 'authorization.openshift.io', 'localresourceaccessreviews') && (
          <p>
            <Link to={`/project/${project}/who-can`}>{text.nav.whoCan}</Link>
          </p>
        )}
        {mayChange && <AddMember key={kind} kind={kind} project={project} add={(subject, role) => addRole(project, subject, role)} />}
      </PageSection>
      {removing && (
        <Confirm
          title={text.membership.remove}
          body={text.membership.removeBody(removing.role.name, removing.subject.name) + (isOwn ? ' ' + text.membership.own : '')}
          action={text.membership.remove}
          run={() => removeRole(project, removing.subject, removing.role)}
          close={() => setRemoving(undefined)}
        />
      )}
    </>
  );
}

interface MembersProps {
  label: string;
  members: Member[];
  remove?: (of: { subject: Subject; role: RoleRef }) => void;
}

function Members({ label, members, remove }: MembersProps) {
  return (
    <Table aria-label={label} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.name}</Th>
          <Th>{text.membership.roles}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {members.map(({ subject, roles }) => (
          <Tr key={`${subject.namespace} ${subject.name}`}>
            <Td dataLabel={text.name}>{subject.kind === 'ServiceAccount' ? `${subject.namespace}/${subject.name}` : subject.name}</Td>
            <Td dataLabel={text.membership.roles}>
              <LabelGroup numLabels={12} aria-label={text.membership.rolesOf(subject.name)}>
                {roles.map((role) => (
                  <Label
                    key={`${role.kind} ${role.name}`}
                    variant="outline"
                    onClose={remove && (() => remove({ subject, role }))}
                    closeBtnAriaLabel={text.membership.removeLabel(role.name, subject.name)}
                  >
                    {role.name}
                  </Label>
                ))}
              </LabelGroup>
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
