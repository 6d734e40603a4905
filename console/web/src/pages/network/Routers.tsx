import { Label } from '@patternfly/react-core';
import { Link } from 'react-router';
import { useObjects } from '../../api/hooks';
import { admission, type Route } from '../../api/routes';
import { network } from '../../text/network';
import { DataTable } from '../../ui/DataTable';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { Panel } from '../../ui/Panel';
import { StackPage } from '../../ui/StackPage';

const t = network.routers;

interface Count {
  router: string;
  admitted: number;
  refused: number;
}

/** countsOf returns how many routes each router has admitted and refused. */
export function countsOf(routes: Route[]): Count[] {
  const counts = new Map<string, Count>();
  for (const { routerName = '-', conditions } of routes.flatMap((route) => route.status?.ingress ?? [])) {
    const count = counts.get(routerName) ?? { router: routerName, admitted: 0, refused: 0 };
    const served = conditions?.some(({ type, status }) => type === 'Admitted' && status === 'True') === true;
    counts.set(routerName, { ...count, admitted: count.admitted + (served ? 1 : 0), refused: count.refused + (served ? 0 : 1) });
  }
  return [...counts.values()].sort((a, b) => a.router.localeCompare(b.router));
}

/** Component shows the cluster's routers, and the routes that no router has admitted. */
export function Component() {
  const routes = useObjects<Route>('/apis/route.openshift.io/v1/routes');
  if (routes.error && !routes.loaded) {
    return <Failure error={routes.error} />;
  }
  const refused = routes.items.filter((route) => !admission(route).admitted);
  return (
    <StackPage title={t.title} body={t.body}>
      <Interrupted snapshots={[routes]} />
      {!routes.loaded ? (
        <Loading />
      ) : (
        <>
          <Panel title={t.title}>
            <DataTable
              label={t.title}
              items={countsOf(routes.items)}
              keyOf={({ router }) => router}
              empty={t.none}
              columns={[
                { title: t.router, cell: ({ router }) => router },
                { title: t.admitted, cell: ({ admitted }) => admitted },
                { title: t.refused, cell: ({ refused: n }) => (n > 0 ? <Label color="red">{n}</Label> : n) },
              ]}
            />
          </Panel>
          <Panel title={t.problems}>
            <DataTable
              label={t.problems}
              items={refused}
              keyOf={({ metadata }) => metadata.uid}
              empty={t.noProblems}
              columns={[
                { title: t.route, cell: ({ metadata }) => <Link to={`/project/${metadata.namespace}/routes.route.openshift.io/${metadata.name}`}>{`${metadata.namespace}/${metadata.name}`}</Link> },
                { title: t.host, cell: ({ spec }) => spec.host ?? '-' },
                { title: t.reason, cell: (route) => admission(route).reason || t.undecided },
              ]}
            />
          </Panel>
        </>
      )}
    </StackPage>
  );
}
