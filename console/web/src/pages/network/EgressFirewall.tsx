import { Label } from '@patternfly/react-core';
import type { EgressNetworkPolicy } from '../../api/policies';
import { text } from '../../text/en';
import { network as t } from '../../text/network';
import { DataTable } from '../../ui/DataTable';

/** EgressFirewall shows an egress firewall's rules, in order. */
export default function EgressFirewall({ policy }: { policy: EgressNetworkPolicy }) {
  return (
    <DataTable
      label={t.egress}
      items={(policy.spec?.egress ?? []).map((rule, index) => ({ ...rule, index: index + 1 }))}
      keyOf={({ index }) => String(index)}
      empty={text.none}
      columns={[
        { title: t.rule, cell: ({ index }) => index },
        { title: t.action, cell: ({ type }) => <Label color={type === 'Deny' ? 'red' : 'green'}>{type === 'Deny' ? t.deny : t.allow}</Label> },
        { title: t.destination, cell: ({ to }) => to?.dnsName ?? to?.cidrSelector ?? '-' },
      ]}
    />
  );
}
