import { EmptyState, List, ListItem, PageSection, SearchInput, Stack, StackItem, Title } from '@patternfly/react-core';
import { Link, useParams, useSearchParams } from 'react-router';
import { useCatalog } from '../../api/catalog';
import type { Resource, Resources } from '../../api/discovery';
import { useResources, useRights, useTables } from '../../api/hooks';
import { linkTo } from '../../app/links';
import { label } from '../../app/navigation';
import { text } from '../../text/en';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { filterRows } from '../ResourceList';
import { filterItems } from '../catalog/filter';

/** searchIDs contains the resources that the search covers, in the order of the results. */
const searchIDs = [
  'services',
  'routes.route.openshift.io',
  'deployments.apps',
  'deploymentconfigs.apps.openshift.io',
  'statefulsets.apps',
  'daemonsets.apps',
  'pods',
  'jobs.batch',
  'cronjobs.batch',
  'serviceinstances.servicecatalog.k8s.io',
  'buildconfigs.build.openshift.io',
  'builds.build.openshift.io',
  'imagestreams.image.openshift.io',
  'persistentvolumeclaims',
  'configmaps',
  'secrets',
];

/** maxFound is the maximum number of results for a kind. */
const maxFound = 20;

/** Component searches for a project's services and other objects, and for catalog items. */
export function Component() {
  const { project = '' } = useParams();
  const [query, setQuery] = useSearchParams();
  const resources = useResources();
  const rights = useRights(project);
  const filter = query.get('filter') ?? '';
  useTitle(text.search.title, project);
  const set = (value: string) => setQuery(value === '' ? {} : { filter: value }, { replace: true });
  const covered = searchIDs.map((id) => resources?.get(id)).filter((r) => r !== undefined && rights.may('list', r.group, r.name)) as Resource[];
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.search.title}</Title>
      </PageSection>
      <PageSection isFilled aria-label={text.search.title}>
        <Stack hasGutter>
          <StackItem>
            <SearchInput aria-label={text.search.label} placeholder={text.search.label} value={filter} onChange={(_, value) => set(value)} onClear={() => set('')} />
          </StackItem>
          {filter.trim() === '' ? (
            <EmptyState headingLevel="h2" titleText={text.search.empty} />
          ) : resources && covered.length > 0 ? (
            <Results key={project} project={project} resources={resources} covered={covered} filter={filter} />
          ) : (
            <Loading />
          )}
        </Stack>
      </PageSection>
    </>
  );
}

interface ResultsProps {
  project: string;
  resources: Resources;
  covered: Resource[];
  filter: string;
}

function Results({ project, resources, covered, filter }: ResultsProps) {
  const tables = useTables(covered, project);
  const catalog = useCatalog(project);
  const groups = covered
    .map((resource, index) => ({ resource, rows: filterRows(tables[index]?.items ?? [], filter) }))
    .filter(({ rows }) => rows.length > 0);
  const items = filterItems(catalog.data ?? [], filter);
  const loaded = !catalog.isPending && tables.every((table) => table.loaded || table.error);
  return (
    <>
      <Interrupted snapshots={tables} />
      {groups.map(({ resource, rows }) => (
        <Group
          key={resource.id}
          title={label(resource.id, resources)}
          all={`/project/${project}/${resource.id}?${new URLSearchParams({ filter })}`}
          links={rows.map((row) => ({ key: row.metadata.uid, path: linkTo(resource, project, row.metadata.name), name: row.metadata.name }))}
        />
      ))}
      {items.length > 0 && (
        <Group
          title={text.catalog.title}
          all={`/project/${project}/catalog?${new URLSearchParams({ filter })}`}
          links={items.map((item) => ({ key: item.path, path: `/catalog/${item.path}?${new URLSearchParams({ project })}`, name: item.title }))}
        />
      )}
      {!loaded ? <Loading /> : groups.length === 0 && items.length === 0 && <EmptyState headingLevel="h2" titleText={text.search.none} />}
    </>
  );
}

function Group({ title, all, links }: { title: string; all: string; links: { key: string; path: string; name: string }[] }) {
  return (
    <StackItem>
      <section aria-label={title}>
        <Title headingLevel="h2" size="lg">
          {title} ({links.length})
        </Title>
        <List isPlain>
          {links.slice(0, maxFound).map((link) => (
            <ListItem key={link.key}>
              <Link to={link.path}>{link.name}</Link>
            </ListItem>
          ))}
          {links.length > maxFound && (
            <ListItem>
              <Link to={all}>{text.search.all(links.length)}</Link>
            </ListItem>
          )}
        </List>
      </section>
    </StackItem>
  );
}
