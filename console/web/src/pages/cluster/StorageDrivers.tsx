import { Alert, Button, Card, CardBody, CardTitle, EmptyState, Label, LabelGroup, PageSection, Stack, StackItem, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { isVolumeFailure, readDrivers, type Driver, type VolumeEvent } from '../../api/drivers';
import { lastSeen, newestFirst } from '../../api/events';
import { useObjects } from '../../api/hooks';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
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
  const events = useObjects<VolumeEvent>('/api/v1/events', { fieldSelector: 'type=Warning' });
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
                <Alert isInline component="h2" variant="warning" title={text.drivers.unreachable(node)}>
                  {reason}
                </Alert>
              </StackItem>
            ))}
            <StackItem>
              <Card>
                <CardTitle component="h2">{text.drivers.flexVolume}</CardTitle>
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
                <CardTitle component="h2">{text.drivers.csi}</CardTitle>
                <CardBody>
                  <CSI drivers={csi.items} nodes={nodes.items} />
                </CardBody>
              </Card>
            </StackItem>
            <StackItem>
              <Card>
                <CardTitle component="h2">{text.drivers.failures}</CardTitle>
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
    return <EmptyState headingLevel="h3" titleText={text.drivers.noCalls} />;
  }
  return (
    <Table aria-label={text.drivers.flexVolume} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.drivers.driver}</Th>
          <Th>{text.pod.node}</Th>
          <Th>{text.drivers.health}</Th>
          <Th>{text.drivers.calls}</Th>
          <Th>{text.drivers.mean}</Th>
          <Th>{text.drivers.inFlight}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {drivers.map((driver) => (
          <Tr key={`${driver.node} ${driver.name}`}>
            <Td dataLabel={text.drivers.driver}>{driver.name}</Td>
            <Td dataLabel={text.pod.node}>
              <Link to={`/cluster/nodes/${driver.node}`}>{driver.node}</Link>
            </Td>
            <Td dataLabel={text.drivers.health}>
              {driver.failures.length === 0 ? (
                <Label color="green">{text.drivers.healthy}</Label>
              ) : (
                <LabelGroup numLabels={8} aria-label={text.drivers.failuresOf(driver.name)}>
                  {driver.failures.map(({ operation, kind, count }) => (
                    <Label key={`${operation} ${kind}`} color="red">
                      {text.drivers.failure(operation, kind, count)}
                    </Label>
                  ))}
                </LabelGroup>
              )}
            </Td>
            <Td dataLabel={text.drivers.calls}>{driver.calls}</Td>
            <Td dataLabel={text.drivers.mean}>{Number.isNaN(driver.meanSeconds) ? '-' : `${driver.meanSeconds.toFixed(3)} s`}</Td>
            <Td dataLabel={text.drivers.inFlight}>{driver.inFlight}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function CSI({ drivers, nodes }: { drivers: KubeObject[]; nodes: CSINode[] }) {
  const names = new Set([...drivers.map(({ metadata }) => metadata.name), ...nodes.flatMap((node) => node.spec?.drivers ?? []).map(({ name }) => name)]);
  if (names.size === 0) {
    return <EmptyState headingLevel="h3" titleText={text.drivers.noCSI} />;
  }
  return (
    <Table aria-label={text.drivers.csi} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.drivers.driver}</Th>
          <Th>{text.drivers.nodes}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {[...names].sort().map((name) => {
          const registered = nodes.filter((node) => node.spec?.drivers?.some((driver) => driver.name === name));
          return (
            <Tr key={name}>
              <Td dataLabel={text.drivers.driver}>{name}</Td>
              <Td dataLabel={text.drivers.nodes}>
                {registered.length > 0 ? registered.map(({ metadata }) => metadata.name).join(', ') : <Label color="red">{text.drivers.unregistered}</Label>}
              </Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}

function Failures({ events }: { events: VolumeEvent[] }) {
  if (events.length === 0) {
    return <EmptyState headingLevel="h3" titleText={text.drivers.noFailures} />;
  }
  return (
    <Table aria-label={text.drivers.failures} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.events.last}</Th>
          <Th>{text.drivers.object}</Th>
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
            <Td dataLabel={text.drivers.object}>
              <Involved event={event} />
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

function Involved({ event }: { event: VolumeEvent }) {
  const { kind, namespace, name } = event.involvedObject;
  const title = [kind, namespace ? `${namespace}/${name}` : name].join(' ');
  return kind === 'Pod' && namespace ? <Link to={`/project/${namespace}/pods/${name}`}>{title}</Link> : <>{title}</>;
}
