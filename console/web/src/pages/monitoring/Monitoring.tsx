import { EmptyState, Grid, GridItem, PageSection, SearchInput, Title, ToggleGroup, ToggleGroupItem, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useParams, useSearchParams } from 'react-router';
import { config } from '../../api/config';
import { eventsPath, filterEvents, type Event } from '../../api/events';
import { useObjects, useResources, useRights } from '../../api/hooks';
import { useStore } from '../../api/store';
import { text } from '../../text/en';
import { EventList } from '../../ui/EventList';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { Sources } from './Sources';
import { isSourceKind, sourceKinds } from './sourceKinds';

const wide = { xl: 6 } as const;

/**
 * Component shows the logs of a project's pods, builds and deployments, and all of the project's
 * events.
 */
export function Component() {
  const { project = '' } = useParams();
  const resources = useResources();
  const rights = useRights(project);
  const [query, setQuery] = useSearchParams();
  const filter = query.get('filter') ?? '';
  const kind = query.get('kind') ?? '';
  useTitle(text.monitoring.title, project);
  const set = (key: string, value: string) => {
    const next = new URLSearchParams(query);
    next.set(key, value);
    setQuery(next, { replace: true });
  };
  const { loggingPublicURL, metricsPublicURL } = useStore(config).clusterInfo;
  const outside = [
    [text.monitoring.archive, loggingPublicURL],
    [text.monitoring.metrics, metricsPublicURL],
  ].filter(([, address]) => address !== '');
  const kinds = Object.keys(sourceKinds).filter((id) => {
    const resource = resources?.get(id);
    return resource && rights.may('list', resource.group, resource.name);
  });
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.monitoring.title}</Title>
      </PageSection>
      <PageSection isFilled aria-label={text.monitoring.title}>
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <SearchInput aria-label={text.monitoring.filter} placeholder={text.list.filter} value={filter} onChange={(_, value) => set('filter', value)} onClear={() => set('filter', '')} />
            </ToolbarItem>
            <ToolbarItem>
              <ToggleGroup aria-label={text.monitoring.kind}>
                {['', ...kinds].map((id) => (
                  <ToggleGroupItem key={id} text={isSourceKind(id) ? sourceKinds[id] : text.monitoring.all} isSelected={kind === id} onChange={() => set('kind', id)} />
                ))}
              </ToggleGroup>
            </ToolbarItem>
            {outside.map(([label, address]) => (
              <ToolbarItem key={label} alignSelf="center">
                <a href={address} target="_blank" rel="noreferrer">
                  {label}
                </a>
              </ToolbarItem>
            ))}
          </ToolbarContent>
        </Toolbar>
        <Grid hasGutter>
          <GridItem {...wide}>
            <section aria-label={text.monitoring.logs}>
              <Title headingLevel="h2">{text.monitoring.logs}</Title>
              {resources ? (
                <Sources key={project} project={project} resources={resources} kinds={kinds.filter((id) => kind === '' || kind === id)} filter={filter} />
              ) : (
                <Loading />
              )}
            </section>
          </GridItem>
          <GridItem {...wide}>
            <section aria-label={text.details.tabs.events}>
              <Title headingLevel="h2">{text.details.tabs.events}</Title>
              <Events project={project} filter={filter} />
            </section>
          </GridItem>
        </Grid>
      </PageSection>
    </>
  );
}

function Events({ project, filter }: { project: string; filter: string }) {
  const events = useObjects<Event>(eventsPath(project));
  if (events.error && !events.loaded) {
    return <Failure error={events.error} project={project} />;
  }
  if (!events.loaded) {
    return <Loading />;
  }
  const shown = filterEvents(events.items, filter);
  return (
    <>
      <Interrupted snapshots={[events]} />
      {shown.length === 0 ? (
        <EmptyState headingLevel="h3" titleText={filter === '' ? text.events.empty : text.list.noMatch} />
      ) : (
        <EventList events={shown} />
      )}
    </>
  );
}
