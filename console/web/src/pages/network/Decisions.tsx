import { Label } from '@patternfly/react-core';
import type { Route } from '../../api/routes';
import { network } from '../../text/network';
import { DataTable } from '../../ui/DataTable';
import { Age } from '../../ui/Age';
import { text } from '../../text/en';

const t = network.routers;

/** Decisions shows each router's decision about a route. */
export default function Decisions({ route }: { route: Route }) {
  return (
    <DataTable
      label={t.decisions}
      items={(route.status?.ingress ?? []).map((ingress, index) => ({ ...ingress, index, admitted: ingress.conditions?.find(({ type }) => type === 'Admitted') }))}
      keyOf={({ index }) => String(index)}
      empty={t.undecided}
      columns={[
        { title: t.router, cell: ({ routerName }) => routerName ?? '-' },
        { title: t.host, cell: ({ host }) => host ?? '-' },
        { title: t.admitted, cell: ({ admitted }) => <Label color={admitted?.status === 'True' ? 'green' : 'red'}>{admitted?.status === 'True' ? text.facts.yes : text.facts.no}</Label> },
        { title: t.reason, cell: ({ admitted }) => [admitted?.reason, admitted?.message].filter(Boolean).join(': ') || '-' },
        { title: text.details.changed, cell: ({ admitted }) => <Age of={admitted?.lastTransitionTime} /> },
        { title: t.canonical, cell: ({ routerCanonicalHostname }) => routerCanonicalHostname || '-' },
      ]}
    />
  );
}
