import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Label,
  PageSection,
  SearchInput,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { lazy, Suspense, useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { noRights, useRights } from '../api/hooks';
import { deleteProject, description, displayName, requester, usePermission, useProjects, type Project } from '../api/projects';
import { persistent } from '../app/load';
import { text } from '../text/en';
import { Age } from '../ui/Age';
import { Confirm } from '../ui/Confirm';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
import { RowActions } from '../ui/RowActions';
import { useTitle } from '../ui/useTitle';
import { CreateProject } from './CreateProject';

const EditProject = lazy(persistent(() => import('./EditProject')));

/** Component lists the user's projects. */
export function Component() {
  useTitle(text.projects.title);
  const projects = useProjects();
  const { mayRequest, refusal } = usePermission();
  const navigate = useNavigate();
  const [filter, setFilter] = useState('');
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<string>();
  const [editing, setEditing] = useState<Project>();
  const wanted = filter.toLowerCase();
  const shown = projects.items.filter((p) => `${p.metadata.name} ${displayName(p)} ${description(p)}`.toLowerCase().includes(wanted));
  const create = mayRequest && (
    <Button onClick={() => setCreating(true)}>{text.projects.create}</Button>
  );
  if (projects.error && !projects.loaded) {
    return <Failure error={projects.error} />;
  }
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.projects.title}</Title>
        {refusal !== undefined && <p className="console-message">{refusal}</p>}
      </PageSection>
      <PageSection isFilled>
        {!projects.loaded ? (
          <Loading />
        ) : projects.items.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={text.projects.empty}>
            <EmptyStateBody>{text.projects.emptyBody}</EmptyStateBody>
            <EmptyStateFooter>
              <EmptyStateActions>{create}</EmptyStateActions>
            </EmptyStateFooter>
          </EmptyState>
        ) : (
          <>
            <Toolbar>
              <ToolbarContent>
                <ToolbarItem>
                  <SearchInput aria-label={text.projects.filter} placeholder={text.projects.filter} value={filter} onChange={(_, value) => setFilter(value)} onClear={() => setFilter('')} />
                </ToolbarItem>
                <ToolbarItem>{create}</ToolbarItem>
              </ToolbarContent>
            </Toolbar>
            <Table aria-label={text.projects.title} variant="compact">
              <Thead>
                <Tr>
                  <Th>{text.name}</Th>
                  <Th>{text.projects.displayName}</Th>
                  <Th>{text.projects.requester}</Th>
                  <Th>{text.projects.status}</Th>
                  <Th>{text.age}</Th>
                  <Th screenReaderText={text.actions} />
                </Tr>
              </Thead>
              <Tbody>
                {shown.map((p) => (
                  <Tr key={p.metadata.uid}>
                    <Td dataLabel={text.name}>
                      <Link to={`/project/${p.metadata.name}/overview`}>{p.metadata.name}</Link>
                    </Td>
                    <Td dataLabel={text.projects.displayName}>{displayName(p) || '-'}</Td>
                    <Td dataLabel={text.projects.requester}>{requester(p) || '-'}</Td>
                    <Td dataLabel={text.projects.status}>
                      <Label color={p.status?.phase === 'Active' ? 'green' : 'orange'}>{p.status?.phase ?? '-'}</Label>
                    </Td>
                    <Td dataLabel={text.age}>
                      <Age of={p.metadata.creationTimestamp} />
                    </Td>
                    <Td isActionCell>
                      <ProjectActions project={p} edit={() => setEditing(p)} remove={() => setDeleting(p.metadata.name)} />
                    </Td>
                  </Tr>
                ))}
                {shown.length === 0 && (
                  <Tr>
                    <Td colSpan={6}>{text.projects.noMatch}</Td>
                  </Tr>
                )}
              </Tbody>
            </Table>
          </>
        )}
      </PageSection>
      {creating && <CreateProject close={() => setCreating(false)} created={(name) => void navigate(`/project/${name}/overview`)} />}
      {editing && (
        <Suspense>
          <EditProject project={editing} close={() => setEditing(undefined)} />
        </Suspense>
      )}
      {deleting !== undefined && (
        <Confirm
          title={text.projects.delete}
          body={text.projects.deleteBody(deleting)}
          action={text.delete}
          typed={deleting}
          run={() => deleteProject(deleting)}
          close={() => setDeleting(undefined)}
        />
      )}
    </>
  );
}

/**
 * ProjectActions is the menu of the actions that the user may perform on a project. The permissions
 * in a project are read when its menu is opened, because there can be thousands of projects.
 */
function ProjectActions({ project, edit, remove }: { project: Project; edit: () => void; remove: () => void }) {
  const { name, deletionTimestamp } = project.metadata;
  const [opened, setOpened] = useState(false);
  const rights = useRights(opened ? name : undefined);
  const may = (verb: string) => rights.may(verb, 'project.openshift.io', 'projects', name);
  const items = [
    ...(may('patch') ? [{ title: text.projects.edit, onClick: edit }] : []),
    ...(may('delete') ? [{ title: text.projects.delete, isDisabled: deletionTimestamp !== undefined, onClick: remove }] : []),
  ];
  const none = { title: rights === noRights ? text.loading : text.projects.noAction, isDisabled: true };
  return <RowActions name={name} items={items.length > 0 ? items : [none]} onOpen={() => setOpened(true)} />;
}
