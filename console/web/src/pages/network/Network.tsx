import { EmptyState, StackItem } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { Link, useParams } from 'react-router';
import { readable, useCollections } from '../../api/collections';
import { pathOf, type Resources } from '../../api/discovery';
import { useResources, useRights } from '../../api/hooks';
import { get } from '../../api/http';
import { isOwned } from '../../api/owners';
import { allowances, describeSelector, type EgressNetworkPolicy, type NetworkPolicy } from '../../api/policies';
import type { KubeObject, LooseObject } from '../../api/types';
import { labelsOf } from '../../api/topology';
import { workloadIDs } from '../../api/workloads';
import { linkTo } from '../../app/links';
import { words } from '../../app/navigation';
import { text } from '../../text/en';
import { network as t } from '../../text/network';
import { DataTable } from '../../ui/DataTable';
import { Graph, type Edge, type Node } from '../../ui/Graph';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { Panel } from '../../ui/Panel';
import { StackPage } from '../../ui/StackPage';
import EgressFirewall from './EgressFirewall';

const policyID = 'networkpolicies.networking.k8s.io';
const egressID = 'egressnetworkpolicies.network.openshift.io';
const netNamespaceID = 'netnamespaces.network.openshift.io';
const podIDs = [...workloadIDs, 'pods'];

/** Component draws a project's network policies, and shows the project's egress firewall. */
export function Component() {
  const { project = '' } = useParams();
  const resources = useResources();
  const rights = useRights(project);
  const shown = resources ? readable([policyID, egressID, ...podIDs], resources, rights) : [];
  return (
    <StackPage title={t.title} project={project} body={t.body}>
      {resources && shown.length > 0 ? <Content key={project} project={project} resources={resources} shown={shown} /> : <Loading />}
    </StackPage>
  );
}

function Content({ project, resources, shown }: { project: string; resources: Resources; shown: ReturnType<typeof readable> }) {
  const collections = useCollections(shown, project);
  const policies = collections.of(policyID) as unknown as NetworkPolicy[];
  const firewalls = collections.of(egressID) as unknown as EgressNetworkPolicy[];
  const drawing = useMemo(() => drawingOf(collections.of, policies, resources, project), [collections, resources, project]);
  if (!collections.loaded) {
    return <Loading />;
  }
  const link = (id: string, object: KubeObject) => {
    const resource = resources.get(id);
    return resource ? <Link to={linkTo(resource, project, object.metadata.name)}>{object.metadata.name}</Link> : object.metadata.name;
  };
  return (
    <>
      <StackItem>
        <Interrupted snapshots={collections.snapshots} />
        {drawing.nodes.length === 0 ? <EmptyState headingLevel="h2" titleText={t.empty} /> : <Graph label={t.drawing} nodes={drawing.nodes} edges={drawing.edges} />}
      </StackItem>
      <Panel title={t.policies}>
        <DataTable
          label={t.policies}
          items={policies}
          keyOf={({ metadata }) => metadata.uid}
          empty={t.noPolicies}
          columns={[
            { title: text.name, cell: (policy) => link(policyID, policy) },
            { title: t.pods, cell: ({ spec }) => describeSelector(spec?.podSelector) || t.allPods },
            { title: text.details.type, cell: ({ spec }) => (spec?.policyTypes ?? ['Ingress']).join(', ') },
          ]}
        />
      </Panel>
      {shown.some(({ id }) => id === egressID) && (
        <Panel title={t.egress}>
          {firewalls.length === 0 && <p>{t.noEgress}</p>}
          {firewalls.map((firewall) => (
            <div key={firewall.metadata.uid}>
              <p>
                {link(egressID, firewall)}: {t.order}
              </p>
              <EgressFirewall policy={firewall} />
            </div>
          ))}
        </Panel>
      )}
      <NetNamespace project={project} resources={resources} />
    </>
  );
}

/** NetNamespace shows a project's network to users who may read the NetNamespace. */
function NetNamespace({ project, resources }: { project: string; resources: Resources }) {
  const resource = resources.get(netNamespaceID);
  const rights = useRights(undefined);
  const mayRead = resource !== undefined && rights.may('get', resource.group, resource.name, project);
  const { data } = useQuery({
    queryKey: [netNamespaceID, project],
    queryFn: () => get<{ netid: number; egressIPs?: string[] | null }>(resource ? pathOf(resource, undefined, project) : ''),
    enabled: mayRead,
    retry: false,
  });
  return data ? (
    <Panel title={t.netNamespace}>
      <DataTable
        label={t.netNamespace}
        items={[data]}
        keyOf={() => project}
        empty={text.none}
        columns={[
          { title: t.netID, cell: ({ netid }) => netid },
          { title: t.egressIPs, cell: ({ egressIPs }) => egressIPs?.join(', ') || text.none },
        ]}
      />
    </Panel>
  ) : null;
}

const columns = { source: 0, pods: 1, destination: 2 };

/**
 * drawingOf returns a drawing that shows, for each workload, the peers that can reach its pods, and
 * the peers that its pods can reach.
 */
function drawingOf(of: (id: string) => LooseObject[], policies: NetworkPolicy[], resources: Resources, project: string): { nodes: Node[]; edges: Edge[] } {
  const nodes = new Map<string, Node>();
  const edges: (Edge & { label: string })[] = [];
  const owners = podIDs.flatMap((id) => of(id).map((object) => ({ id, object })));
  for (const { id, object } of owners) {
    if (id === 'pods' && isOwned(object)) {
      continue;
    }
    const key = `${id}/${object.metadata.name}`;
    const resource = resources.get(id);
    const labels = labelsOf(object);
    const incoming = allowances(policies, labels, 'Ingress');
    const outgoing = allowances(policies, labels, 'Egress');
    const sources = incoming ?? [{ peer: t.everyone, kind: t.source, ports: '', policy: '' }];
    for (const { peer, kind, ports } of sources) {
      const source = `source ${peer}`;
      nodes.set(source, { id: source, column: columns.source, kind, name: peer, description: '' });
      edges.push({ from: source, to: key, label: ports });
    }
    for (const { peer, kind, ports } of outgoing ?? []) {
      const destination = `destination ${peer}`;
      nodes.set(destination, { id: destination, column: columns.destination, kind, name: peer, description: '' });
      edges.push({ from: key, to: destination, label: ports });
    }
    const peers = sources.map(({ peer, ports }) => (ports ? `${peer} (${ports})` : peer)).join(', ') || t.nobody;
    nodes.set(key, {
      id: key,
      column: columns.pods,
      kind: words(object.kind),
      name: object.metadata.name,
      detail: incoming === undefined ? t.everyoneDetail : undefined,
      state: incoming === undefined ? undefined : 'success',
      path: resource && linkTo(resource, project, object.metadata.name),
      description: [t.reachableBy(peers), outgoing && t.mayReach(outgoing.map(({ peer, ports }) => `${peer} (${ports})`).join(', ') || t.nobody)].filter(Boolean).join(' '),
    });
  }
  return { nodes: [...nodes.values()], edges: mergeEdges(edges) };
}

/** mergeEdges merges the lines between the same nodes into one line with all ports. */
function mergeEdges(edges: (Edge & { label: string })[]): Edge[] {
  const merged = new Map<string, Edge & { label: string }>();
  for (const edge of edges) {
    const key = `${edge.from} ${edge.to}`;
    const known = merged.get(key);
    merged.set(key, known && known.label !== edge.label ? { ...edge, label: `${known.label}, ${edge.label}` } : edge);
  }
  return [...merged.values()];
}
