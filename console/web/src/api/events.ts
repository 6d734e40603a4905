import type { KubeObject } from './types';

/** Event is an event about an object. */
export interface Event extends KubeObject {
  type?: string;
  reason?: string;
  message?: string;
  involvedObject: { kind: string; apiVersion?: string; namespace?: string; name: string; uid?: string };
  count?: number;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { count?: number; lastObservedTime?: string };
}

/** eventsPath returns the path of a project's events, or of all events without a project. */
export function eventsPath(project?: string): string {
  return project === undefined ? '/api/v1/events' : `/api/v1/namespaces/${encodeURIComponent(project)}/events`;
}

/** lastSeen returns the time of an event's last occurrence. */
export function lastSeen(event: Pick<Event, 'metadata' | 'series' | 'lastTimestamp' | 'eventTime'>): string {
  return event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp;
}

/** newestFirst returns events sorted by their last occurrence, newest first. */
export function newestFirst<T extends Pick<Event, 'metadata' | 'series' | 'lastTimestamp' | 'eventTime'>>(events: T[]): T[] {
  return [...events].sort((a, b) => lastSeen(b).localeCompare(lastSeen(a)));
}

/** countOf returns an event's number of occurrences. */
export function countOf(event: Event): number {
  return event.series?.count ?? event.count ?? 1;
}

/** isRefusal reports whether an event reports that a quota or a limit rejected an object. */
export function isRefusal({ type, message }: Event): boolean {
  return type === 'Warning' && /exceeded quota: |(maximum|minimum) \S+ usage per /.test(message ?? '');
}

/** filterEvents returns the events that contain all words in a filter. */
export function filterEvents(events: Event[], filter: string): Event[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return events.filter((event) => {
    const { kind, name } = event.involvedObject;
    const all = [kind, name, event.type, event.reason, event.message].join(' ').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
