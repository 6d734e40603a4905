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
import { Table, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { lazy, Suspense, useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
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
import { VirtualRows, type RowRef } from '../ui/VirtualRows';
import { CreateProject } from './CreateProject';

const EditProject = lazy(persistent(() => import('./EditProject')));

/** Component lists the user's projects. */
export function Component() {
  useTitle(text.projects.title);
  const projects = useProjects();
  const { mayRequest, refusal } = usePermission();
  const navigate = useNavigate();
  const [filter, setFilter] = useState('');
  const [query] = useSearchParams();
  const [creating, setCreating] = useState(query.has('create'));
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
            {shown.length === 0 ? (
              <EmptyState headingLevel="h2" titleText={text.projects.noMatch} />
            ) : (
              <ProjectTable projects={shown} edit={setEditing} remove={({ metadata }) => setDeleting(metadata.name)} />
            )}
          </>
        )}
      </PageSection>
      {creating && mayRequest && <CreateProject close={() => setCreating(false)} created={(name) => void navigate(`/project/${name}/overview`)} />}
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

interface ProjectTableProps {
  projects: Project[];
  edit: (project: Project) => void;
  remove: (project: Project) => void;
}

/** ProjectTable is the table of projects. The document contains only visible rows. */
function ProjectTable({ projects, edit, remove }: ProjectTableProps) {
  const [scroll, setScroll] = useState<HTMLDivElement | null>(null);
  const titles = [text.name, text.projects.displayName, text.projects.requester, text.projects.status, text.age];
  return (
    <div className="console-scroll" ref={setScroll} tabIndex={0} role="region" aria-label={text.projects.title}>
      <Table aria-label={text.projects.title} aria-rowcount={projects.length + 1} variant="compact" isStickyHeader>
        <Thead>
          <Tr>
            {titles.map((title) => (
              <Th key={title}>{title}</Th>
            ))}
            <Th screenReaderText={text.actions} />
          </Tr>
        </Thead>
        <VirtualRows
          count={projects.length}
          width={titles.length + 1}
          scroll={scroll}
          row={(index, measure) => {
            const project = projects[index] as Project;
            return <ProjectRow key={project.metadata.uid} project={project} index={index} measure={measure} edit={() => edit(project)} remove={() => remove(project)} />;
          }}
        />
      </Table>
    </div>
  );
}

interface ActionProps {
  project: Project;
  edit: () => void;
  remove: () => void;
}

function ProjectRow({ project, index, measure, ...actions }: ActionProps & { index: number; measure: RowRef }) {
  const { name, creationTimestamp } = project.metadata;
  return (
    <Tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      <Td dataLabel={text.name}>
        <Link to={`/project/${name}/overview`}>{name}</Link>
      </Td>
      <Td dataLabel={text.projects.displayName}>{displayName(project) || '-'}</Td>
      <Td dataLabel={text.projects.requester}>{requester(project) || '-'}</Td>
      <Td dataLabel={text.projects.status}>
        <Label color={project.status?.phase === 'Active' ? 'green' : 'orange'}>{project.status?.phase ?? '-'}</Label>
      </Td>
      <Td dataLabel={text.age}>
        <Age of={creationTimestamp} />
      </Td>
      <Td isActionCell>
        <ProjectActions project={project} {...actions} />
      </Td>
    </Tr>
  );
}

/**
 * ProjectActions is the menu of the actions that the user may perform on a project. The permissions
 * in a project are read when its menu is opened, because there can be thousands of projects.
 */
function ProjectActions({ project, edit, remove }: ActionProps) {
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
