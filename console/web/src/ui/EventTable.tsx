import { Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { countOf, lastSeen, newestFirst, type Event } from '../api/events';
import { text } from '../text/en';
import { Age } from './Age';

/** maxEvents is the maximum number of events on a page. */
export const maxEvents = 200;

/** EventTable shows an object's events, newest first. */
export function EventTable({ events }: { events: Event[] }) {
  const shown = newestFirst(events).slice(0, maxEvents);
  return (
    <>
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
          {shown.map((event) => (
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
              <Td dataLabel={text.events.count}>{countOf(event)}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {events.length > maxEvents && <p>{text.events.trimmed(maxEvents, events.length)}</p>}
    </>
  );
}
