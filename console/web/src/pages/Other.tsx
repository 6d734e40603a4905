import { PageSection, SearchInput, Title, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useState } from 'react';
import { Link, useParams } from 'react-router';
import type { Resource, Resources } from '../api/discovery';
import { useResources, useRights } from '../api/hooks';
import type { Rights } from '../api/rights';
import { isHidden } from '../app/constants';
import { label } from '../app/navigation';
import { about } from '../text/about';
import { DataTable } from '../ui/DataTable';
import { Loading } from '../ui/Loading';
import { useTitle } from '../ui/useTitle';

const t = about.other;

/**
 * listed returns the resources of a project or of the cluster that the user may list and that match
 * a filter. It omits the kinds that scripts hide.
 */
export function listed(resources: Resources, rights: Rights, inProject: boolean, filter: string): Resource[] {
  const wanted = filter.toLowerCase();
  return [...resources.values()]
    .filter((r) => r.verbs.includes('list') && (r.namespaced || !inProject) && rights.may('list', r.group, r.name) && !isHidden(r))
    .filter((r) => `${label(r.id, resources)} ${r.kind} ${r.id}`.toLowerCase().includes(wanted))
    .sort((a, b) => a.kind.localeCompare(b.kind) || a.group.localeCompare(b.group));
}

/**
 * Component lists every resource that the server serves, including resources that administrators
 * have added.
 */
export function Component() {
  const { project } = useParams();
  useTitle(t.title, project);
  const resources = useResources();
  const rights = useRights(project);
  const [filter, setFilter] = useState('');
  const root = project === undefined ? '/cluster' : `/project/${project}`;
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{t.title}</Title>
      </PageSection>
      <PageSection isFilled>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput aria-label={t.filter} placeholder={t.filter} value={filter} onChange={(_, value) => setFilter(value)} onClear={() => setFilter('')} />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
        {resources ? (
          <DataTable
            label={t.title}
            items={listed(resources, rights, project !== undefined, filter)}
            keyOf={({ id }) => id}
            empty={t.none}
            columns={[
              { title: t.kind, cell: (r) => <Link to={`${root}/${r.id}`}>{label(r.id, resources)}</Link> },
              { title: t.group, cell: ({ group }) => group || t.core },
              { title: t.version, cell: ({ version }) => version },
            ]}
          />
        ) : (
          <Loading />
        )}
      </PageSection>
    </>
  );
}
