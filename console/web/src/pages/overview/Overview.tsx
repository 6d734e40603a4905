import { EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, PageSection, SearchInput, Stack, StackItem, Title, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { lazy, Suspense, useMemo, useState } from 'react';
import { Link, useParams } from 'react-router';
import { pathOf, type Resource, type Resources } from '../../api/discovery';
import { useObjects, useResources, useTable } from '../../api/hooks';
import { summarize } from '../../api/pods';
import type { Route } from '../../api/routes';
import type { KubeObject } from '../../api/types';
import { workloadIDs, type Workload } from '../../api/workloads';
import { persistent } from '../../app/load';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { Builds } from './Builds';
import { WorkloadCard } from './WorkloadCard';

/** These parts are loaded after the workloads, because they need more of the project's objects. */
const Warnings = lazy(persistent(() => import('./Warnings')));
const Others = lazy(persistent(() => import('./Others')));

export interface Service extends KubeObject {
  spec: { selector?: Record<string, string> };
}

/** Component shows a project's workloads. */
export function Component() {
  const { project = '' } = useParams();
  const resources = useResources();
  useTitle(text.overview.title, project);
  return resources ? <Overview key={project} project={project} resources={resources} /> : <Loading />;
}

/** useWorkloads watches a project's workloads, with their resources. */
function useWorkloads(project: string, resources: Resources) {
  // The IDs are constant, so the hooks are always called in the same order.
  const lists = workloadIDs.map((id) => {
    const resource = resources.get(id) as Resource;
    return { resource, snapshot: useObjects<Workload>(pathOf(resource, project)) };
  });
  const workloads = lists.flatMap(({ resource, snapshot }) => snapshot.items.map((workload) => ({ resource, workload })));
  workloads.sort((a, b) => a.workload.metadata.name.localeCompare(b.workload.metadata.name));
  return { workloads, snapshots: lists.map((list) => list.snapshot) };
}

function Overview({ project, resources }: { project: string; resources: Resources }) {
  const [filter, setFilter] = useState('');
  const [hasOthers, setHasOthers] = useState(false);
  const { workloads, snapshots } = useWorkloads(project, resources);
  const podTable = useTable(resources.get('pods') as Resource, project);
  const pods = useMemo(() => summarize(podTable), [podTable]);
  const services = useObjects<Service>(pathOf(resources.get('services') as Resource, project));
  const routes = useObjects<Route>(pathOf(resources.get('routes.route.openshift.io') as Resource, project));
  const all = [...snapshots, podTable, services, routes];
  const failed = snapshots.find((snapshot) => snapshot.error && !snapshot.loaded);
  if (failed?.error) {
    return <Failure error={failed.error} project={project} />;
  }
  const hasWorkloads = workloads.length > 0;
  const wanted = filter.toLowerCase();
  const shown = workloads.filter(({ workload }) => workload.metadata.name.includes(wanted));
  const loaded = snapshots.every((snapshot) => snapshot.loaded);
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.overview.title}</Title>
      </PageSection>
      <PageSection isFilled aria-label={text.overview.title}>
        <Interrupted snapshots={all} />
        {!loaded ? (
          <Loading />
        ) : (
          <>
            <Suspense>
              <Warnings project={project} resources={resources} pods={podTable.loaded ? pods : undefined} />
            </Suspense>
            {(hasWorkloads || hasOthers) && (
              <Toolbar>
                <ToolbarContent>
                  <ToolbarItem>
                    <SearchInput aria-label={text.overview.filter} placeholder={text.overview.filter} value={filter} onChange={(_, value) => setFilter(value)} onClear={() => setFilter('')} />
                  </ToolbarItem>
                </ToolbarContent>
              </Toolbar>
            )}
            <Stack hasGutter>
              {shown.map(({ resource, workload }) => (
                <StackItem key={workload.metadata.uid}>
                  <WorkloadCard project={project} resource={resource} workload={workload} pods={pods} services={services.items} routes={routes.items} />
                </StackItem>
              ))}
              <Suspense fallback={!hasWorkloads && <Loading />}>
                <Others
                  project={project}
                  resources={resources}
                  pods={pods}
                  podsLoaded={podTable.loaded || podTable.error !== undefined}
                  services={services.items}
                  routes={routes.items}
                  filter={wanted}
                  empty={<Empty project={project} />}
                  hasWorkloads={hasWorkloads}
                  report={setHasOthers}
                />
              </Suspense>
            </Stack>
          </>
        )}
        <Builds project={project} resources={resources} />
      </PageSection>
    </>
  );
}

/** Empty links to the catalog from a project without applications. */
function Empty({ project }: { project: string }) {
  return (
    <EmptyState headingLevel="h2" titleText={text.overview.empty}>
      <EmptyStateBody>{text.overview.emptyBody}</EmptyStateBody>
      <EmptyStateFooter>
        <EmptyStateActions>
          <Link to={`/project/${project}/catalog`}>{text.overview.browse}</Link>
        </EmptyStateActions>
      </EmptyStateFooter>
    </EmptyState>
  );
}
