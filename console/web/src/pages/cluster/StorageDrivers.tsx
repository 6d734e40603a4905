import { Alert, Button, Card, CardBody, CardTitle, EmptyState, Label, LabelGroup, PageSection, Stack, StackItem, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { isVolumeFailure, readDrivers, type Driver } from '../../api/drivers';
import { lastSeen, newestFirst, type Event } from '../../api/events';
import { useObjects } from '../../api/hooks';
import type { KubeObject } from '../../api/types';
import { drivers as t } from '../../text/drivers';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { ObjectLink } from '../../ui/ObjectLink';
import { useTitle } from '../../ui/useTitle';

/** maxEvents is the maximum number of failures on the page. */
const maxEvents = 50;

interface CSINode extends KubeObject {
  spec?: { drivers?: { name: string }[] | null };
}

/**
 * Component shows the cluster's storage drivers, their health, and the reasons why volumes fail.
 */
export function Component() {
  useTitle(text.drivers.title);
  const drivers = useQuery({ queryKey: ['drivers'], queryFn: readDrivers, staleTime: 0 });
  const events = useObjects<Event>('/api/v1/events', { fieldSelector: 'type=Warning' });
  const csi = useObjects('/apis/storage.k8s.io/v1/csidrivers');
  const nodes = useObjects<CSINode>('/apis/storage.k8s.io/v1/csinodes');
  if (drivers.error) {
    return <Failure error={drivers.error} retry={() => void drivers.refetch()} />;
  }
  const failures = newestFirst(events.items.filter(isVolumeFailure));
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.drivers.title}</Title>
        <Interrupted snapshots={[events, csi, nodes]} />
      </PageSection>
      <PageSection isFilled>
        {!drivers.data || !events.loaded ? (
          <Loading />
        ) : (
          <Stack hasGutter>
            {drivers.data.unreachable.map(({ node, reason }) => (
              <StackItem key={node}>
                <Alert isInline component="h2" variant="warning" title={t.unreachable(node)}>
                  {reason}
                </Alert>
              </StackItem>
            ))}
            <StackItem>
              <Card>
                <CardTitle component="h2">{t.flexVolume}</CardTitle>
                <CardBody>
                  <FlexVolumes drivers={drivers.data.drivers} />
                  <Button variant="secondary" isDisabled={drivers.isFetching} onClick={() => void drivers.refetch()}>
                    {text.editor.reload}
                  </Button>
                </CardBody>
              </Card>
            </StackItem>
            <StackItem>
              <Card>
                <CardTitle component="h2">{t.csi}</CardTitle>
                <CardBody>
                  <CSI drivers={csi.items} nodes={nodes.items} />
                </CardBody>
              </Card>
            </StackItem>
            <StackItem>
              <Card>
                <CardTitle component="h2">{t.failures}</CardTitle>
                <CardBody>
                  <Failures events={failures.slice(0, maxEvents)} />
                </CardBody>
              </Card>
            </StackItem>
          </Stack>
        )}
      </PageSection>
    </>
  );
}

function FlexVolumes({ drivers }: { drivers: Driver[] }) {
  if (drivers.length === 0) {
    return <EmptyState headingLevel="h3" titleText={t.noCalls} />;
  }
  return (
    <Table aria-label={t.flexVolume} variant="compact">
      <Thead>
        <Tr>
          <Th>{t.driver}</Th>
          <Th>{text.pod.node}</Th>
          <Th>{t.health}</Th>
          <Th>{t.calls}</Th>
          <Th>{t.mean}</Th>
          <Th>{t.inFlight}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {drivers.map((driver) => (
          <Tr key={`${driver.node} ${driver.name}`}>
            <Td dataLabel={t.driver}>{driver.name}</Td>
            <Td dataLabel={text.pod.node}>
              <Link to={`/cluster/nodes/${driver.node}`}>{driver.node}</Link>
            </Td>
            <Td dataLabel={t.health}>
              {driver.failures.length === 0 ? (
                <Label color="green">{t.healthy}</Label>
              ) : (
                <LabelGroup numLabels={8} aria-label={t.failuresOf(driver.name)}>
                  {driver.failures.map(({ operation, kind, count }) => (
                    <Label key={`${operation} ${kind}`} color="red">
                      {t.failure(operation, kind, count)}
                    </Label>
                  ))}
                </LabelGroup>
              )}
            </Td>
            <Td dataLabel={t.calls}>{driver.calls}</Td>
            <Td dataLabel={t.mean}>{Number.isNaN(driver.meanSeconds) ? '-' : `${driver.meanSeconds.toFixed(3)} s`}</Td>
            <Td dataLabel={t.inFlight}>{driver.inFlight}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function CSI({ drivers, nodes }: { drivers: KubeObject[]; nodes: CSINode[] }) {
  const names = new Set([...drivers.map(({ metadata }) => metadata.name), ...nodes.flatMap((node) => node.spec?.drivers ?? []).map(({ name }) => name)]);
  if (names.size === 0) {
    return <EmptyState headingLevel="h3" titleText={t.noCSI} />;
  }
  return (
    <Table aria-label={t.csi} variant="compact">
      <Thead>
        <Tr>
          <Th>{t.driver}</Th>
          <Th>{t.nodes}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {[...names].sort().map((name) => {
          const registered = nodes.filter((node) => node.spec?.drivers?.some((driver) => driver.name === name));
          return (
            <Tr key={name}>
              <Td dataLabel={t.driver}>{name}</Td>
              <Td dataLabel={t.nodes}>
                {registered.length > 0 ? registered.map(({ metadata }) => metadata.name).join(', ') : <Label color="red">{t.unregistered}</Label>}
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

function Failures({ events }: { events: Event[] }) {
  if (events.length === 0) {
    return <EmptyState headingLevel="h3" titleText={t.noFailures} />;
  }
  return (
    <Table aria-label={t.failures} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.events.last}</Th>
          <Th>{t.object}</Th>
          <Th>{text.details.reason}</Th>
          <Th>{text.details.message}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {events.map((event) => (
          <Tr key={event.metadata.uid}>
            <Td dataLabel={text.events.last}>
              <Age of={lastSeen(event)} />
            </Td>
            <Td dataLabel={t.object}>
              <ObjectLink of={event.involvedObject} title={titleOf(event)} />
            </Td>
            <Td dataLabel={text.details.reason}>{event.reason}</Td>
            <Td dataLabel={text.details.message} modifier="breakWord">
              {event.message}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

/** titleOf returns the kind, project and name of an event's object. */
function titleOf({ involvedObject: { kind, namespace, name } }: Event): string {
  return `${kind} ${namespace ? `${namespace}/` : ''}${name}`;
}
