import { planOf, type PodOfNode } from '../../../api/drain';
import { useObjects } from '../../../api/hooks';
import { bytes } from '../../../api/image';
import { quantity } from '../../../api/quantity';
import type { LooseObject } from '../../../api/types';
import { amountsOf, useUsage } from '../../../api/usage';
import { text } from '../../../text/en';
import { nodes } from '../../../text/nodes';
import { DataTable } from '../../../ui/DataTable';

interface NodeStatus {
  capacity?: Record<string, string>;
  allocatable?: Record<string, string>;
}

/** show formats an amount of a resource. */
function show(resource: string, amount: number | undefined): string {
  if (amount === undefined || Number.isNaN(amount)) {
    return '-';
  }
  return resource === 'cpu' ? nodes.cpu(amount) : resource === 'pods' ? String(amount) : bytes(amount);
}

/** NodeResources shows a node's capacity, the requests of its pods, and its usage. */
export default function NodeResources({ node }: { node: LooseObject }) {
  const { name } = node.metadata;
  const { items } = useObjects<PodOfNode>('/api/v1/pods', { fieldSelector: `spec.nodeName=${name}` });
  const usage = useUsage('nodes', undefined, name);
  const status = (node.status ?? {}) as NodeStatus;
  const plan = planOf(items);
  const running = [...plan.evicted, ...plan.skipped].filter((pod) => !['Succeeded', 'Failed'].includes(pod.status?.phase ?? ''));
  const requested: Record<string, number> = {
    ...amountsOf(running.flatMap((pod) => (pod.spec.containers ?? []).map((container) => container.resources?.requests))),
    pods: running.length,
  };
  const used: Record<string, number> = { ...usage };
  const names = ['cpu', 'memory', 'pods', 'ephemeral-storage'].filter((resource) => status.capacity?.[resource] !== undefined);
  const amount = (list: Record<string, string> | undefined, resource: string) => (list?.[resource] === undefined ? undefined : quantity(list[resource]));
  return (
    <DataTable
      label={nodes.resources}
      items={names}
      keyOf={(resource) => resource}
      empty={text.none}
      columns={[
        { title: text.sections.resource, cell: (resource) => resource },
        { title: nodes.capacity, cell: (resource) => show(resource, amount(status.capacity, resource)) },
        { title: nodes.allocatable, cell: (resource) => show(resource, amount(status.allocatable, resource)) },
        { title: nodes.requested, cell: (resource) => show(resource, requested[resource]) },
        { title: nodes.used, cell: (resource) => show(resource, used[resource]) },
      ]}
    />
  );
}
