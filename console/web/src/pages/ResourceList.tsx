import { Button, EmptyState, PageSection, SearchInput, Title, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { memo, useMemo, useState } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import { pathOf, type Resource, type Resources } from '../api/discovery';
import { useResources, useRights, useTable } from '../api/hooks';
import { remove } from '../api/http';
import type { Row } from '../api/types';
import { label, words } from '../app/navigation';
import { text } from '../text/en';
import { Confirm } from '../ui/Confirm';
import { Failure } from '../ui/Failure';
import { Interrupted } from '../ui/Interrupted';
import { Loading } from '../ui/Loading';
import { ResourceTable } from '../ui/ResourceTable';
import { useTitle } from '../ui/useTitle';
import { isForm } from './forms/ids';
import { Component as NotFound } from './NotFound';

/** automaticIDs contains the resources whose objects the cluster creates itself. */
const automaticIDs = ['nodes', 'csinodes.storage.k8s.io', 'volumeattachments.storage.k8s.io', 'hostsubnets.network.openshift.io', 'netnamespaces.network.openshift.io'];

/** Component lists a resource's objects, in a project or in the cluster. */
export function Component() {
  const { project, resource: id = '' } = useParams();
  const resources = useResources();
  if (!resources) {
    return <Loading />;
  }
  const resource = resources.get(id);
  if (!resource?.verbs.includes('list') || (project !== undefined && !resource.namespaced)) {
    return <NotFound />;
  }
  return <List key={`${project} ${id}`} project={project} resource={resource} resources={resources} />;
}

function List({ project, resource, resources }: { project: string | undefined; resource: Resource; resources: Resources }) {
  const title = label(resource.id, resources);
  useTitle(title, project);
  const table = useTable(resource, project);
  const rights = useRights(project);
  const [query] = useSearchParams();
  const [deleting, setDeleting] = useState<Row>();
  const filter = query.get('filter') ?? '';
  const rows = useMemo(() => filterRows(table.items, filter), [table.items, filter]);
  if (table.error && !table.loaded) {
    return <Failure error={table.error} project={project} />;
  }
  const mayCreate = !automaticIDs.includes(resource.id) && resource.verbs.includes('create') && rights.may('create', resource.group, resource.name);
  const mayDelete = resource.verbs.includes('delete') && rights.may('delete', resource.group, resource.name);
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{title}</Title>
      </PageSection>
      <PageSection isFilled>
        <Interrupted snapshots={[table]} />
        <Bar title={title} project={project} resource={resource} mayCreate={mayCreate} count={table.loaded ? text.list.count(rows.length, table.items.length) : undefined} />
        {!table.loaded && table.items.length === 0 ? (
          <Loading />
        ) : rows.length === 0 ? (
          <EmptyState headingLevel="h2" titleText={filter === '' ? text.list.empty(title) : text.list.noMatch} />
        ) : (
          <ResourceTable
            label={title}
            columns={table.columns}
            rows={rows}
            withProject={project === undefined && resource.namespaced}
            resource={resource}
            remove={mayDelete ? setDeleting : undefined}
          />
        )}
      </PageSection>
      {deleting && (
        <Confirm
          title={text.details.deleteTitle(words(resource.kind))}
          body={text.details.deleteBody(deleting.metadata.name)}
          action={text.delete}
          run={() => remove(pathOf(resource, deleting.metadata.namespace, deleting.metadata.name))}
          close={() => setDeleting(undefined)}
        />
      )}
    </>
  );
}

interface BarProps {
  title: string;
  project: string | undefined;
  resource: Resource;
  mayCreate: boolean;
  /** count is the number of rows. */
  count: string | undefined;
}

/** Bar contains the list's filter. It does not render again when an object changes. */
const Bar = memo(function Bar({ title, project, resource, mayCreate, count }: BarProps) {
  const navigate = useNavigate();
  const [query, setQuery] = useSearchParams();
  const setFilter = (value: string) => setQuery(value === '' ? {} : { filter: value }, { replace: true });
  const root = project === undefined ? '/cluster' : `/project/${project}`;
  return (
    <Toolbar>
      <ToolbarContent>
        <ToolbarItem>
          <SearchInput
            aria-label={text.list.filterLabel(title)}
            placeholder={text.list.filter}
            value={query.get('filter') ?? ''}
            onChange={(_, value) => setFilter(value)}
            onClear={() => setFilter('')}
            resultsCount={count}
          />
        </ToolbarItem>
        {mayCreate && resource.namespaced === (project !== undefined) && (
          <ToolbarItem>
            <Button variant="secondary" onClick={() => void navigate(isForm(resource.id) ? `${root}/create/${resource.id}` : `${root}/import?kind=${resource.id}`)}>
              {text.list.create(words(resource.kind))}
            </Button>
          </ToolbarItem>
        )}
      </ToolbarContent>
    </Toolbar>
  );
});

/** filterRows returns the rows that have all words of a filter in their cells or labels. */
export function filterRows(rows: Row[], filter: string): Row[] {
  const wanted = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) {
    return rows;
  }
  return rows.filter((row) => {
    const labels = Object.entries(row.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    const all = [row.metadata.name, row.metadata.namespace ?? '', ...row.cells.map(String), ...labels].join(' ').toLowerCase();
    return wanted.every((word) => all.includes(word));
  });
}
