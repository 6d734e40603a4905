import { useMemo } from 'react';
import { eventsPath, newestFirst, type Event } from '../../api/events';
import { useObjects } from '../../api/hooks';
import { Store, useStore } from '../../api/store';
import { isNotification } from '../constants';

/** isOpen indicates whether the notification drawer is open. */
export const isOpen = new Store(false);

/** notableReasons lists the reasons of normal events that users wait for. */
const notableReasons = [
  'BuildStarted',
  'BuildCompleted',
  'BuildFailed',
  'BuildCancelled',
  'DeploymentCreated',
  'DeploymentCancelled',
  'SuccessfulRescale',
  'ProvisionedSuccessfully',
  'InjectedBindResult',
  'DeprovisionedSuccessfully',
];

/**
 * quietKinds contains the kinds that have too many normal events. Only their warnings are
 * notifications.
 */
const quietKinds = ['Pod', 'ReplicaSet', 'ReplicationController', 'Job'];

const warnings = 'type=Warning';
const others = ['type=Normal', ...quietKinds.map((kind) => `involvedObject.kind!=${kind}`)].join(',');

/** maxNotifications is the maximum number of a project's notifications. */
const maxNotifications = 100;

const key = 'notifications';

/**
 * Marks contains the UIDs of events that the user has read, and of events that the user has
 * dismissed.
 */
interface Marks {
  read: string[];
  dismissed: string[];
}

function stored(): Marks {
  try {
    const value = JSON.parse(sessionStorage.getItem(key) ?? '{}') as Partial<Marks>;
    return { read: value.read ?? [], dismissed: value.dismissed ?? [] };
  } catch {
    return { read: [], dismissed: [] };
  }
}

const marks = new Store<Marks>(stored());

/** maxMarks is the maximum number of stored marks. */
const maxMarks = 1000;

/**
 * mark records that the user has read or dismissed notifications. The record is kept until the
 * window is closed.
 */
export function mark(as: keyof Marks, events: Event[]): void {
  const uids = events.map((event) => event.metadata.uid);
  const next = { ...marks.get(), [as]: [...new Set([...marks.get()[as], ...uids])].slice(-maxMarks) };
  sessionStorage.setItem(key, JSON.stringify(next));
  marks.set(next);
}

/** Notifications contains a project's events that its members should see. */
export interface Notifications {
  shown: Event[];
  unread: Event[];
}

const isNotable = (reason: string) => isNotification(reason) ?? notableReasons.includes(reason);

/** notable returns the events that are notifications. It omits dismissed events. */
export function notable(events: Event[], dismissed: string[]): Event[] {
  const relevant = events.filter((event) => event.type === 'Warning' || isNotable(event.reason ?? ''));
  return newestFirst(relevant.filter((event) => !dismissed.includes(event.metadata.uid))).slice(0, maxNotifications);
}

/** useWarningEvents watches a project's events of type Warning. */
export const useWarningEvents = (project: string): Event[] => useObjects<Event>(eventsPath(project), { fieldSelector: warnings }).items;

/** useNotifications watches a project's notifications, newest first. */
export function useNotifications(project: string): Notifications {
  const failed = useWarningEvents(project);
  const regular = useObjects<Event>(eventsPath(project), { fieldSelector: others }).items;
  const { read, dismissed } = useStore(marks);
  return useMemo(() => {
    const shown = notable([...failed, ...regular], dismissed);
    return { shown, unread: shown.filter((event) => !read.includes(event.metadata.uid)) };
  }, [failed, regular, read, dismissed]);
}
