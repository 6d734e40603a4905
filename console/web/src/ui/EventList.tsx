import { Label, List, ListItem } from '@patternfly/react-core';
import { Link } from 'react-router';
import { resourceOf } from '../api/discovery';
import { countOf, lastSeen, newestFirst, type Event } from '../api/events';
import { useResources } from '../api/hooks';
import { linkTo } from '../app/links';
import { text } from '../text/en';
import { Age } from './Age';
import { maxEvents } from './EventTable';

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
              <ObjectOf event={event} /> <strong>{countOf(event) > 1 ? text.notifications.times(event.reason ?? '', countOf(event)) : event.reason}</strong> <Age of={lastSeen(event)} />
              <p className="console-break">{event.message}</p>
            </ListItem>
          ))}
      </List>
      {events.length > maxEvents && <p>{text.events.trimmed(maxEvents, events.length)}</p>}
    </>
  );
}

/** ObjectOf links to an event's object, if the server serves the object's kind. */
export function ObjectOf({ event }: { event: Event }) {
  const resources = useResources();
  const { apiVersion = 'v1', kind, name, namespace } = event.involvedObject;
  const resource = resources && resourceOf(resources, apiVersion, kind);
  const title = `${kind} ${name}`;
  return resource ? <Link to={linkTo(resource, namespace, name)}>{title}</Link> : <>{title}</>;
}
