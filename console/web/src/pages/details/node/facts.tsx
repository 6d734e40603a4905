import type { LooseObject } from '../../../api/types';
import { text } from '../../../text/en';
import { nodes } from '../../../text/nodes';
import type { Fact } from '../facts';

/** cockpitKey is the annotation that contains the address of a host's Cockpit. */
const cockpitKey = 'slipway.openshift.io/cockpit';

const rolePrefix = 'node-role.kubernetes.io/';

interface Node {
  spec?: { unschedulable?: boolean; taints?: { key: string; value?: string; effect: string }[] };
  status?: { addresses?: { type: string; address: string }[]; nodeInfo?: Record<string, string> };
}

/**
 * httpsAddress returns the given text as a URL if a page can safely link to it, and undefined
 * otherwise.
 */
export function httpsAddress(of: string | undefined): string | undefined {
  try {
    const address = new URL(of ?? '');
    return address.protocol === 'https:' && address.username === '' && address.password === '' ? address.href : undefined;
  } catch {
    return undefined;
  }
}

/** nodeFacts returns the facts about a node. */
export function nodeFacts(object: LooseObject): Fact[] {
  const { spec = {}, status = {} } = object as unknown as Node;
  const { labels = {}, annotations = {} } = object.metadata;
  const roles = Object.keys(labels).filter((label) => label.startsWith(rolePrefix)).map((label) => label.slice(rolePrefix.length));
  const info = status.nodeInfo ?? {};
  const cockpit = httpsAddress(annotations[cockpitKey]);
  const facts: Fact[] = [
    [nodes.roles, roles.join(', ') || text.none],
    [nodes.addresses, (status.addresses ?? []).map(({ type, address }) => <div key={`${type} ${address}`}>{`${type}: ${address}`}</div>)],
    [nodes.schedulable, spec.unschedulable ? nodes.unschedulable : text.facts.yes],
    [nodes.taints, (spec.taints ?? []).map(({ key, value, effect }) => <div key={`${key} ${effect}`}>{`${key}${value ? `=${value}` : ''}:${effect}`}</div>)],
    [nodes.kubelet, info.kubeletVersion ?? '-'],
    [nodes.runtime, info.containerRuntimeVersion ?? '-'],
    [nodes.system, [info.osImage, info.architecture].filter(Boolean).join(', ') || '-'],
    [nodes.kernel, info.kernelVersion ?? '-'],
  ];
  if (cockpit) {
    facts.push([
      nodes.cockpit,
      <a key="cockpit" href={cockpit} target="_blank" rel="noreferrer">
        {nodes.cockpitLink}
      </a>,
    ]);
  }
  return facts.map(([term, value]) => [term, Array.isArray(value) && value.length === 0 ? text.none : value]);
}
