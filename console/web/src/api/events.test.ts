import { expect, it } from 'vitest';
import { notable } from '../app/notifications/notifications';
import { filterEvents, isRefusal, newestFirst, type Event } from './events';

const event = (uid: string, fields: Partial<Event>): Event => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: uid, uid, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  involvedObject: { kind: 'Pod', name: 'front-1' },
  ...fields,
});

const events = [
  event('started', { type: 'Normal', reason: 'Started', lastTimestamp: '2026-01-01T00:00:01Z' }),
  event('stuck', { type: 'Warning', reason: 'FailedScheduling', message: 'no node', series: { lastObservedTime: '2026-01-01T00:00:09Z' } }),
  event('built', { type: 'Normal', reason: 'BuildCompleted', involvedObject: { kind: 'Build', name: 'site-1' }, eventTime: '2026-01-01T00:00:05Z' }),
];
const uids = (all: Event[]) => all.map(({ metadata }) => metadata.uid);

it('sorts events by their last occurrence', () => {
  expect(uids(newestFirst(events))).toEqual(['stuck', 'built', 'started']);
});

it('finds all words of a filter in the object, reason and message', () => {
  expect(uids(filterEvents(events, 'pod NO node'))).toEqual(['stuck']);
  expect(uids(filterEvents(events, ' '))).toHaveLength(3);
  expect(filterEvents(events, 'pod built')).toEqual([]);
});

it.each([
  ['Warning', 'Error creating: pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1', true],
  ['Warning', 'Error creating: pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi', true],
  ['Warning', 'Error creating: pods "a" is forbidden: unable to validate against any security context constraint', false],
  ['Normal', 'exceeded quota: small', false],
])('knows refusals by quotas and limits: %s %s', (type, message, expected) => {
  expect(isRefusal(event('a', { type, message }))).toBe(expected);
});

it('notifies of warnings and of results, except those that were dismissed', () => {
  expect(uids(notable(events, []))).toEqual(['stuck', 'built']);
  expect(uids(notable(events, ['stuck']))).toEqual(['built']);
});

it('notifies of the reasons that scripts have added, and not of those that they have removed', () => {
  window.OPENSHIFT_CONSTANTS = { EVENTS_TO_SHOW: { Started: true, BuildCompleted: false } };
  expect(uids(notable(events, []))).toEqual(['stuck', 'started']);
  delete window.OPENSHIFT_CONSTANTS;
});
