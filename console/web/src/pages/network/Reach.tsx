import { useObjects } from '../../api/hooks';
import { allowances, type NetworkPolicy } from '../../api/policies';
import type { LooseObject } from '../../api/types';
import { network as t } from '../../text/network';
import { DataTable } from '../../ui/DataTable';
import { Loading } from '../../ui/Loading';

/** Reach shows the peers that may connect to a pod. */
export default function Reach({ pod }: { pod: LooseObject }) {
  const path = `/apis/networking.k8s.io/v1/namespaces/${encodeURIComponent(pod.metadata.namespace ?? '')}/networkpolicies`;
  const policies = useObjects<NetworkPolicy>(path);
  if (policies.error && !policies.loaded) {
    return <p>{policies.error.message}</p>;
  }
  if (!policies.loaded) {
    return <Loading />;
  }
  const allowed = allowances(policies.items, pod.metadata.labels ?? {}, 'Ingress');
  if (allowed === undefined) {
    return <p>{`${t.everyone}: ${t.everyoneDetail}`}</p>;
  }
  return (
    <DataTable
      label={t.ofPod}
      items={allowed.map((allowance, index) => ({ ...allowance, index }))}
      keyOf={({ index }) => String(index)}
      empty={t.nobody}
      columns={[
        { title: t.source, cell: ({ peer }) => peer },
        { title: t.ports, cell: ({ ports }) => ports },
        { title: t.policy, cell: ({ policy }) => policy },
      ]}
    />
  );
}
