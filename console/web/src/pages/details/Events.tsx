import { EmptyState, Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useObjects } from '../../api/hooks';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { Loading } from '../../ui/Loading';
import type { TabProps } from './tabs';

interface Event extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { count?: number; lastObservedTime?: string };
}

/** lastSeen is the time of the last occurrence of an event. */
export function lastSeen(event: Event): string {
  return event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;
}

/** Events is the tab with the events of an object. Events of cluster objects are in all projects. */
export default function Events({ object, project }: TabProps) {
  const path = project === undefined ? '/api/v1/events' : `/api/v1/namespaces/${project}/events`;
  // The uid of a node in events is its name.
  const uid = object.kind === 'Node' ? object.metadata.name : object.metadata.uid;
  const { items, loaded } = useObjects<Event>(path, { fieldSelector: `involvedObject.uid=${uid}` });
  if (!loaded) {
    return <Loading />;
  }
  if (items.length === 0) {
    return <EmptyState titleText={text.events.empty} />;
  }
  const sorted = [...items].sort((a, b) => lastSeen(b).localeCompare(lastSeen(a)));
  return (
    <Table aria-label={text.details.tabs.events} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.events.last}</Th>
          <Th>{text.events.type}</Th>
          <Th>{text.details.reason}</Th>
          <Th>{text.details.message}</Th>
          <Th>{text.events.count}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {sorted.map((event) => (
          <Tr key={event.metadata.uid}>
            <Td dataLabel={text.events.last}>
              <Age of={lastSeen(event)} />
            </Td>
            <Td dataLabel={text.events.type}>
              <Label color={event.type === 'Warning' ? 'orange' : 'grey'}>{event.type ?? '-'}</Label>
            </Td>
            <Td dataLabel={text.details.reason}>{event.reason ?? '-'}</Td>
            <Td dataLabel={text.details.message} modifier="breakWord">
              {event.message ?? '-'}
            </Td>
            <Td dataLabel={text.events.count}>{event.series?.count ?? event.count ?? 1}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
