import { EmptyState, EmptyStateBody, ExpandableSection, StackItem } from '@patternfly/react-core';
import { useMemo } from 'react';
import { Link, useParams } from 'react-router';
import { readable, useCollections } from '../../api/collections';
import type { Resources } from '../../api/discovery';
import { useResources, useRights } from '../../api/hooks';
import { topologyIDs, topologyOf, type Entity, type Topology } from '../../api/topology';
import { linkTo } from '../../app/links';
import { words } from '../../app/navigation';
import { text } from '../../text/en';
import { topology as t } from '../../text/topology';
import { DataTable } from '../../ui/DataTable';
import { Graph, type Node } from '../../ui/Graph';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { StackPage } from '../../ui/StackPage';

/** Component draws the dependencies between a project's objects. */
export function Component() {
  const { project = '' } = useParams();
  const resources = useResources();
  const rights = useRights(project);
  return (
    <StackPage title={t.title} project={project} body={t.body}>
      {resources ? <Drawing key={project} project={project} resources={resources} readableResources={readable(topologyIDs, resources, rights)} /> : <Loading />}
    </StackPage>
  );
}

interface DrawingProps {
  project: string;
  resources: Resources;
  readableResources: ReturnType<typeof readable>;
}

function Drawing({ project, resources, readableResources }: DrawingProps) {
  const collections = useCollections(readableResources, project);
  const topology = useMemo(() => topologyOf(collections, project), [collections, project]);
  const nodes = useMemo(() => nodesOf(topology, resources, project), [topology, resources, project]);
  if (!collections.loaded || readableResources.length === 0) {
    return <Loading />;
  }
  if (nodes.length === 0) {
    return (
      <EmptyState headingLevel="h2" titleText={t.empty}>
        <EmptyStateBody>{t.emptyBody}</EmptyStateBody>
      </EmptyState>
    );
  }
  const entity = new Map(topology.entities.map((one) => [one.key, one]));
  const link = (key: string) => <EntityLink of={entity.get(key)} resources={resources} project={project} />;
  return (
    <>
      <StackItem>
        <Interrupted snapshots={collections.snapshots} />
        <Graph label={t.title} nodes={nodes} edges={topology.uses} />
      </StackItem>
      <StackItem>
        <ExpandableSection toggleText={t.table}>
          <DataTable
            label={t.table}
            items={topology.uses}
            keyOf={({ from, to }) => `${from} ${to}`}
            empty={text.none}
            columns={[
              { title: t.from, cell: ({ from }) => link(from) },
              { title: t.to, cell: ({ to }) => link(to) },
            ]}
          />
        </ExpandableSection>
      </StackItem>
    </>
  );
}

function EntityLink({ of, resources, project }: { of: Entity | undefined; resources: Resources; project: string }) {
  const resource = resources.get(of?.resource ?? '');
  return of && resource ? <Link to={linkTo(resource, project, of.name)}>{`${words(of.kind)} ${of.name}`}</Link> : null;
}

function nodesOf({ entities, uses }: Topology, resources: Resources, project: string): Node[] {
  const entity = new Map(entities.map((one) => [one.key, one]));
  const names = (keys: string[]) => keys.map((key) => entity.get(key)).flatMap((one) => (one ? [`${words(one.kind)} ${one.name}`] : [])).join(', ');
  return entities.map((one) => {
    const resource = resources.get(one.resource);
    const used = names(uses.filter(({ from }) => from === one.key).map(({ to }) => to));
    const users = names(uses.filter(({ to }) => to === one.key).map(({ from }) => from));
    return {
      id: one.key,
      column: one.layer,
      kind: words(one.kind),
      name: one.name,
      detail: detailOf(one),
      state: one.state,
      path: resource && linkTo(resource, project, one.name),
      description: [used && t.uses(used), users && t.usedBy(users)].filter(Boolean).join(' ') || t.alone,
    };
  });
}

function detailOf({ ready, admitted }: Entity): string | undefined {
  if (ready) {
    return t.ready(...ready);
  }
  return admitted === undefined ? undefined : admitted ? t.admitted : t.refused;
}
