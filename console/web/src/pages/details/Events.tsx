import { EmptyState } from '@patternfly/react-core';
import { eventsPath, type Event } from '../../api/events';
import { useObjects } from '../../api/hooks';
import { text } from '../../text/en';
import { EventTable } from '../../ui/EventTable';
import { Loading } from '../../ui/Loading';
import type { TabProps } from './tabs';

/**
 * Events is the tab with an object's events. Events for cluster-scoped objects can be in any
 * project.
 */
export default function Events({ object, project }: TabProps) {
  // Events about a node contain the node's name instead of its UID.
  const uid = object.kind === 'Node' ? object.metadata.name : object.metadata.uid;
  const { items, loaded } = useObjects<Event>(eventsPath(project), { fieldSelector: `involvedObject.uid=${uid}` });
  if (!loaded) {
    return <Loading />;
  }
  return items.length === 0 ? <EmptyState headingLevel="h2" titleText={text.events.empty} /> : <EventTable events={items} />;
}
