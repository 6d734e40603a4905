import { Alert } from '@patternfly/react-core';
import { isVolumeFailure, volumeEvents } from '../../api/drivers';
import { eventsPath, type Event } from '../../api/events';
import { useObjects } from '../../api/hooks';
import type { LooseObject } from '../../api/types';
import { drivers as t } from '../../text/drivers';

/** VolumeFailures shows why a pod waits for its volumes, or why a claim waits. */
export function VolumeFailures({ of, none }: { of: LooseObject; none: string }) {
  const { items } = useObjects<Event>(eventsPath(of.metadata.namespace ?? ''), { fieldSelector: `involvedObject.uid=${of.metadata.uid}` });
  const events = volumeEvents(items);
  if (events.length === 0) {
    return <p>{none}</p>;
  }
  return events.map((event) => (
    <Alert key={event.metadata.uid} isInline component="h3" variant={isVolumeFailure(event) ? 'danger' : 'info'} title={t.titles[event.reason ?? ''] ?? event.reason}>
      {event.message}
    </Alert>
  ));
}
