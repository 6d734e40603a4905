import { Card, CardBody, Label, StackItem, Title } from '@patternfly/react-core';
import { useEffect, useMemo, type ReactNode } from 'react';
import { Link } from 'react-router';
import { readable, useCollections } from '../../api/collections';
import type { Resource, Resources } from '../../api/discovery';
import { noRights, useReview } from '../../api/hooks';
import { othersOf, replicaIDs, singleIDs, type Other } from '../../api/others';
import { isAlone } from '../../api/owners';
import type { PodSummary } from '../../api/pods';
import type { Route } from '../../api/routes';
import type { Workload } from '../../api/workloads';
import { linkTo } from '../../app/links';
import { words } from '../../app/navigation';
import { others as t } from '../../text/others';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import type { Service } from './Overview';
import { WorkloadCard } from './WorkloadCard';

/** maxShown is the maximum number of cards. */
const maxShown = 20;

const colors = { success: 'green', danger: 'red', info: 'blue', none: 'grey' } as const;

interface OthersProps {
  project: string;
  resources: Resources;
  pods: PodSummary[];
  /** podsLoaded means that pods is complete. */
  podsLoaded: boolean;
  services: Service[];
  routes: Route[];
  /** filter is the text that the name of an object must contain. */
  filter: string;
  /** empty is shown if the project has neither workloads nor these objects. */
  empty: ReactNode;
  hasWorkloads: boolean;
  /** report is called with true if there are objects to show, and with false otherwise. */
  report: (any: boolean) => void;
}

/** Others shows a project's objects that run pods without a rollout, such as bare pods and jobs. */
export default function Others({ project, resources, pods, services, routes, podsLoaded, filter, empty, hasWorkloads, report }: OthersProps) {
  const { rights, error } = useReview(project);
  const offered = useMemo(() => readable([...replicaIDs, ...singleIDs], resources, rights), [resources, rights]);
  const { of, loaded } = useCollections(offered, project);
  const replicas = replicaIDs.flatMap((id) => of(id).filter(isAlone).map((object) => ({ resource: resources.get(id) as Resource, workload: object as unknown as Workload })));
  const singles = useMemo(() => othersOf(of, pods), [of, pods]);
  const hasAny = replicas.length + singles.length > 0;
  useEffect(() => report(hasAny), [report, hasAny]);
  if (error) {
    return <Outcome error={error} />;
  }
  if (!hasAny && !hasWorkloads) {
    return rights !== noRights && loaded && podsLoaded ? empty : <Loading />;
  }
  const shown = singles.filter(({ name }) => name.includes(filter));
  return (
    <>
      {replicas
        .filter(({ workload }) => workload.metadata.name.includes(filter))
        .map(({ resource, workload }) => (
          <StackItem key={workload.metadata.uid}>
            <WorkloadCard project={project} resource={resource} workload={workload} pods={pods} services={services} routes={routes} />
          </StackItem>
        ))}
      {shown.slice(0, maxShown).map((other) => (
        <StackItem key={other.uid}>
          <OtherCard project={project} resource={resources.get(other.resource) as Resource} other={other} />
        </StackItem>
      ))}
      {shown.length > maxShown && <StackItem>{t.trimmed(maxShown, shown.length)}</StackItem>}
    </>
  );
}

/** OtherCard shows an object with its state. */
function OtherCard({ project, resource, other }: { project: string; resource: Resource; other: Other }) {
  return (
    <Card isCompact component="section" aria-label={other.name}>
      <CardBody>
        <div className="console-row">
          <Title headingLevel="h2" size="lg" className="console-grow">
            <Link to={linkTo(resource, project, other.name)}>{other.name}</Link> <Label isCompact>{words(other.kind)}</Label>
          </Title>
          <Label color={colors[other.state]}>{other.status}</Label>
        </div>
      </CardBody>
    </Card>
  );
}
