import { EmptyState, ExpandableSection, Label } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'react-router';
import { byCreation } from '../../api/creation';
import { pathOf, type Resource, type Resources } from '../../api/discovery';
import { useTables } from '../../api/hooks';
import { get } from '../../api/http';
import type { LooseObject, Row } from '../../api/types';
import type { Snapshot } from '../../api/watch';
import { linkTo } from '../../app/links';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { ContainerSelect } from '../../ui/ContainerSelect';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { LogView } from '../../ui/LogView';
import { filterRows } from '../ResourceList';
import { containersOf } from '../details/containers';

/**
 * maxSources is the maximum number of objects on the page. The filter also finds objects that the
 * page does not show.
 */
const maxSources = 50;

/** waiting contains the statuses of objects that have no log yet. */
const waiting = ['New', 'Pending', 'ContainerCreating', 'PodInitializing'];

/** tailLines is the number of lines at the end of a long log that are read first. */
const tailLines = 1000;

interface SourcesProps {
  project: string;
  resources: Resources;
  kinds: string[];
  filter: string;
}

/** Sources lists the objects that have logs, newest first. A click on an object opens its log. */
export function Sources({ project, resources, kinds, filter }: SourcesProps) {
  const listed = kinds.map((id) => resources.get(id)).filter((resource) => resource !== undefined);
  const tables = useTables(listed, project);
  const sources = listed.flatMap((resource, index) => {
    const table = tables[index];
    return filterRows(table?.items ?? [], filter).map((row) => ({ resource, row, status: statusOf(table, row) }));
  });
  sources.sort((a, b) => byCreation(a.row, b.row) || a.row.metadata.name.localeCompare(b.row.metadata.name));
  if (!tables.every((table) => table.loaded || table.error) && sources.length === 0) {
    return <Loading />;
  }
  return (
    <>
      <Interrupted snapshots={tables} />
      {sources.length === 0 && <EmptyState headingLevel="h3" titleText={filter === '' ? text.monitoring.empty : text.list.noMatch} />}
      {sources.slice(0, maxSources).map(({ resource, row, status }) => (
        <Source key={row.metadata.uid} project={project} resource={resource} row={row} status={status} />
      ))}
      {sources.length > maxSources && <p>{text.monitoring.trimmed(maxSources, sources.length)}</p>}
    </>
  );
}

/** statusOf returns the object's status in the server's table, if the table has a status column. */
function statusOf(table: Snapshot<Row> | undefined, row: Row): string {
  const index = table?.columns.findIndex((column) => column.name === 'Status') ?? -1;
  return index < 0 ? '' : String(row.cells[index] ?? '');
}

interface SourceProps {
  project: string;
  resource: Resource;
  row: Row;
  status: string;
}

function Source({ project, resource, row, status }: SourceProps) {
  const [open, setOpen] = useState(false);
  const { name, creationTimestamp } = row.metadata;
  // If the user opened the log before it existed, the new key makes the page read the log again.
  const key = String(waiting.includes(status));
  return (
    <ExpandableSection
      isIndented
      isExpanded={open}
      onToggle={(_, expanded) => setOpen(expanded)}
      toggleContent={
        <span>
          {resource.kind} {name} {status && <Label isCompact>{status}</Label>} <Age of={creationTimestamp} />
        </span>
      }
    >
      {open && (
        <>
          <Link to={linkTo(resource, project, name)}>{text.monitoring.open(resource.kind, name)}</Link>
          {resource.kind === 'Pod' ? <PodLog key={key} project={project} resource={resource} name={name} /> : <Log key={key} project={project} resource={resource} name={name} />}
        </>
      )}
    </ExpandableSection>
  );
}

function PodLog({ project, resource, name }: { project: string; resource: Resource; name: string }) {
  const path = pathOf(resource, project, name);
  const pod = useQuery({ queryKey: ['containers', path], queryFn: () => get<LooseObject>(path) });
  const [chosen, setChosen] = useState<string>();
  if (pod.error) {
    return <Failure error={pod.error} project={project} />;
  }
  if (!pod.data) {
    return <Loading />;
  }
  const containers = containersOf(pod.data);
  const container = chosen ?? containers[0];
  return <Log key={container} project={project} resource={resource} name={name} container={container} tools={containers.length > 1 && <ContainerSelect containers={containers} value={container} onChange={setChosen} />} />;
}

interface LogProps {
  project: string;
  resource: Resource;
  name: string;
  container?: string;
  tools?: ReactNode;
}

function Log({ project, resource, name, container, tools }: LogProps) {
  const query = new URLSearchParams({ follow: 'true', tailLines: String(tailLines) });
  if (container !== undefined) {
    query.set('container', container);
  }
  return (
    <div className="console-inline-log">
      <LogView path={`${pathOf(resource, project, name)}/log?${query}`} name={name} label={text.monitoring.logOf(resource.kind, name)} tools={tools} />
    </div>
  );
}
