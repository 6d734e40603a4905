import { Label, List, ListItem } from '@patternfly/react-core';
import { countOf, lastSeen, newestFirst, type Event } from '../api/events';
import { text } from '../text/en';
import { Age } from './Age';
import { maxEvents } from './EventTable';
import { ObjectLink } from './ObjectLink';

/** EventList shows the events of several objects, newest first. */
export function EventList({ events }: { events: Event[] }) {
  return (
    <>
      <List isPlain isBordered aria-label={text.details.tabs.events}>
        {newestFirst(events)
          .slice(0, maxEvents)
          .map((event) => (
            <ListItem key={event.metadata.uid}>
              <Label isCompact color={event.type === 'Warning' ? 'orange' : 'grey'}>
                {event.type ?? '-'}
              </Label>{' '}
              <ObjectLink of={event.involvedObject} /> <strong>{countOf(event) > 1 ? text.notifications.times(event.reason ?? '', countOf(event)) : event.reason}</strong> <Age of={lastSeen(event)} />
              <p className="console-break">{event.message}</p>
            </ListItem>
          ))}
      </List>
      {events.length > maxEvents && <p>{text.events.trimmed(maxEvents, events.length)}</p>}
    </>
  );
}
