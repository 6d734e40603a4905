import { Alert, Button, Card, CardBody, Label, Progress, Stack, StackItem, Title } from '@patternfly/react-core';
import AngleDownIcon from '@patternfly/react-icons/dist/esm/icons/angle-down-icon';
import AngleUpIcon from '@patternfly/react-icons/dist/esm/icons/angle-up-icon';
import { Link } from 'react-router';
import { pathOf, type Resource } from '../../api/discovery';
import { useRights } from '../../api/hooks';
import { merge } from '../../api/http';
import { selects, type PodSummary } from '../../api/pods';
import { rolloutOf } from '../../api/rollout';
import { addressOf, type Route } from '../../api/routes';
import { desiredOf, isScalable, selectorOf, shortImage, type Workload } from '../../api/workloads';
import { words } from '../../app/navigation';
import { text } from '../../text/en';
import { rollout as t } from '../../text/rollout';
import { Outcome } from '../../ui/Outcome';
import { PodDonut } from '../../ui/PodDonut';
import { useRequest } from '../../ui/useRequest';
import type { Service } from './Overview';

interface CardProps {
  project: string;
  resource: Resource;
  workload: Workload;
  pods: PodSummary[];
  services: Service[];
  routes: Route[];
}

/** WorkloadCard shows a workload with its pods and addresses. */
export function WorkloadCard({ project, resource, workload, pods, services, routes }: CardProps) {
  const rights = useRights(project);
  const { error, send } = useRequest();
  const name = workload.metadata.name;
  const desired = desiredOf(workload);
  const rollout = rolloutOf(workload);
  const own = pods.filter((pod) => selects(selectorOf(workload), pod.labels));
  const labels = workload.spec.template?.metadata?.labels ?? {};
  const serviceNames = services.filter((service) => selects(service.spec.selector, labels)).map((service) => service.metadata.name);
  const reached = routes.filter((route) => serviceNames.includes(route.spec.to?.name ?? ''));
  const scalable = isScalable(resource) && rights.may('patch', resource.group, `${resource.name}/scale`);
  const scale = (replicas: number) => send(() => merge(pathOf(resource, project, name) + '/scale', { spec: { replicas } }));
  return (
    <Card isCompact component="section" aria-label={name}>
      <CardBody>
        <div className="console-row">
          <div className="console-grow">
            <Stack hasGutter>
              <StackItem>
                <Title headingLevel="h2" size="lg">
                  <Link to={`/project/${project}/${resource.id}/${name}`}>{name}</Link> <Label isCompact>{words(workload.kind)}</Label>{' '}
                  {workload.spec.paused && (
                    <Label isCompact color="orange">
                      {text.overview.paused}
                    </Label>
                  )}
                </Title>
              </StackItem>
              {workload.spec.template?.spec?.containers?.map((container) => (
                <StackItem key={container.name} className="console-image" title={container.image}>
                  {shortImage(container.image)}
                </StackItem>
              ))}
              {reached.map((route) => (
                <StackItem key={route.metadata.uid} className="console-break">
                  <RouteLink route={route} />
                </StackItem>
              ))}
              {rollout && (
                <StackItem>
                  {rollout.failure === undefined ? (
                    <Progress title={t.title} size="sm" value={(100 * rollout.done) / rollout.total} label={t.progress(rollout.done, rollout.total)} valueText={t.progress(rollout.done, rollout.total)} />
                  ) : (
                    <Alert isInline isPlain variant="warning" component="h3" title={rollout.failure} />
                  )}
                </StackItem>
              )}
              {error && (
                <StackItem>
                  <Outcome error={error} />
                </StackItem>
              )}
            </Stack>
          </div>
          <div className="console-row">
            <PodDonut pods={own} desired={desired} />
            {scalable && (
              <Stack>
                <Button variant="plain" aria-label={text.overview.scaleUp(name)} icon={<AngleUpIcon />} onClick={() => scale(desired + 1)} />
                <Button variant="plain" aria-label={text.overview.scaleDown(name)} icon={<AngleDownIcon />} isDisabled={desired === 0} onClick={() => scale(desired - 1)} />
              </Stack>
            )}
          </div>
        </div>
      </CardBody>
    </Card>
  );
}

function RouteLink({ route }: { route: Route }) {
  const address = addressOf(route);
  return address === undefined ? (
    <>{route.spec.host}</>
  ) : (
    <a href={address} target="_blank" rel="noreferrer">
      {address}
    </a>
  );
}
