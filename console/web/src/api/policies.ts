import { network as t } from '../text/network';
import { selectsLabels, type LabelSelector } from './selector';
import type { KubeObject } from './types';

interface Peer {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: { cidr: string; except?: string[] };
}

interface Port {
  protocol?: string;
  port?: number | string;
  endPort?: number;
}

export interface NetworkPolicy extends KubeObject {
  spec?: {
    podSelector?: LabelSelector;
    policyTypes?: string[];
    ingress?: { from?: Peer[]; ports?: Port[] }[];
    egress?: { to?: Peer[]; ports?: Port[] }[];
  };
}

export interface EgressNetworkPolicy extends KubeObject {
  spec?: { egress?: { type: string; to?: { cidrSelector?: string; dnsName?: string } }[] };
}

/** Allowance is a peer that pods may connect to, or receive connections from, on certain ports. */
export interface Allowance {
  peer: string;
  kind: string;
  ports: string;
  /** policy is empty if no policy restricts the pods. */
  policy: string;
}

/**
 * describeSelector formats a selector as oc commands do. For a selector that selects all objects,
 * the result is empty.
 */
export function describeSelector(selector: LabelSelector | undefined): string {
  const labels = Object.entries(selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const expressions = (selector?.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    switch (operator) {
      case 'Exists':
        return key;
      case 'DoesNotExist':
        return `!${key}`;
      default:
        return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(', ')})`;
    }
  });
  return [...labels, ...expressions].join(', ');
}

function describePeer({ podSelector, namespaceSelector, ipBlock }: Peer): Pick<Allowance, 'peer' | 'kind'> {
  if (ipBlock) {
    return { kind: t.addresses, peer: ipBlock.except?.length ? t.except(ipBlock.cidr, ipBlock.except.join(', ')) : ipBlock.cidr };
  }
  const pods = describeSelector(podSelector);
  const projects = namespaceSelector && (describeSelector(namespaceSelector) ? t.projectsWith(describeSelector(namespaceSelector)) : t.allProjects);
  if (!projects) {
    return { kind: t.pods, peer: pods ? t.podsWith(pods) : t.allPods };
  }
  return { kind: t.projects, peer: podSelector && pods ? t.inProjects(t.podsWith(pods), projects) : projects };
}

function describePorts(ports: Port[] | undefined): string {
  return (ports ?? []).map(({ protocol = 'TCP', port, endPort }) => `${port ?? '*'}${endPort ? `-${endPort}` : ''}/${protocol}`).join(', ') || t.allPorts;
}

/** Direction is a direction of connections that policies restrict. */
export type Direction = 'Ingress' | 'Egress';

/** applies reports whether a policy restricts pods with the given labels in a direction. */
function applies({ spec }: NetworkPolicy, labels: Record<string, string>, direction: Direction): boolean {
  const types = spec?.policyTypes ?? ['Ingress', ...(spec?.egress ? ['Egress'] : [])];
  return types.includes(direction) && selectsLabels(spec?.podSelector, labels);
}

/**
 * allowances returns the peers that may connect to pods with the given labels, or the peers to
 * which these pods may connect. It returns undefined if no policy restricts the pods, and an empty
 * list if the policies allow nothing.
 */
export function allowances(policies: NetworkPolicy[], labels: Record<string, string>, direction: Direction): Allowance[] | undefined {
  const applied = policies.filter((policy) => applies(policy, labels, direction));
  if (applied.length === 0) {
    return undefined;
  }
  return applied.flatMap(({ metadata, spec }) =>
    (direction === 'Ingress' ? (spec?.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports })) : (spec?.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }))).flatMap(({ peers, ports }) => {
      const everyone = { kind: direction === 'Ingress' ? t.source : t.destination, peer: direction === 'Ingress' ? t.everyone : t.anywhere };
      const described = peers?.length ? peers.map(describePeer) : [everyone];
      return described.map((peer) => ({ ...peer, ports: describePorts(ports), policy: metadata.name }));
    }),
  );
}
