import { useMemo } from 'react';
import { newestFirst, type Event } from '../../api/events';
import { useObjects } from '../../api/hooks';
import { Store, useStore } from '../../api/store';

/** isOpen reports whether the drawer of notifications is open. */
export const isOpen = new Store(false);

/** notableReasons are the reasons of events that report no failure, but that users wait for. */
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

/** quietKinds are the kinds whose regular events are too many. Their warnings are notifications. */
const quietKinds = ['Pod', 'ReplicaSet', 'ReplicationController', 'Job'];

const warnings = 'type=Warning';
const others = ['type=Normal', ...quietKinds.map((kind) => `involvedObject.kind!=${kind}`)].join(',');

/** maxNotifications limits the notifications of a project. */
const maxNotifications = 100;

const key = 'notifications';

/** Marks are the UIDs of events that were read, and of those that were dismissed. */
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

/** maxMarks limits the stored marks. */
const maxMarks = 1000;

/** mark records that notifications were read or dismissed, until the window is closed. */
export function mark(as: keyof Marks, events: Event[]): void {
  const uids = events.map((event) => event.metadata.uid);
  const next = { ...marks.get(), [as]: [...new Set([...marks.get()[as], ...uids])].slice(-maxMarks) };
  sessionStorage.setItem(key, JSON.stringify(next));
  marks.set(next);
}

/** Notifications are the events of a project that its members should see. */
export interface Notifications {
  shown: Event[];
  unread: Event[];
}

/** notable returns the notifications among events, without those that were dismissed. */
export function notable(events: Event[], dismissed: string[]): Event[] {
  const relevant = events.filter((event) => event.type === 'Warning' || notableReasons.includes(event.reason ?? ''));
  return newestFirst(relevant.filter((event) => !dismissed.includes(event.metadata.uid))).slice(0, maxNotifications);
}

/** useNotifications follows the notifications of a project, the newest first. */
export function useNotifications(project: string): Notifications {
  const path = `/api/v1/namespaces/${encodeURIComponent(project)}/events`;
  const failed = useObjects<Event>(path, { fieldSelector: warnings }).items;
  const regular = useObjects<Event>(path, { fieldSelector: others }).items;
  const { read, dismissed } = useStore(marks);
  return useMemo(() => {
    const shown = notable([...failed, ...regular], dismissed);
    return { shown, unread: shown.filter((event) => !read.includes(event.metadata.uid)) };
  }, [failed, regular, read, dismissed]);
}
