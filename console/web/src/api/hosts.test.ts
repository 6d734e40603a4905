import { expect, test } from 'vitest';
import { hostOf, isWell, validity } from './hosts';

const node = (report: string) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n1', uid: '1', resourceVersion: '1', creationTimestamp: '', annotations: { 'slipway.openshift.io/host-report': report } },
  status: { conditions: [{ type: 'Ready', status: 'False', message: 'kubelet stopped' }] },
});

test('a host has the report of its node', () => {
  const report = { version: '1', components: [{ process: 'node', name: 'dns', state: 'ready' }], certificates: [] };
  expect(hostOf(node(JSON.stringify(report)))).toEqual({ name: 'n1', uid: '1', ready: false, reason: 'kubelet stopped', report });
});

test('an invalid report is ignored', () => {
  for (const report of ['', '{', 'null', '[]', '{"components": 7, "certificates": [null]}']) {
    expect(hostOf(node(report)).report?.components ?? []).toEqual([]);
  }
});

test('a component with a note, or that starts, needs attention', () => {
  const of = (state: string, note?: string) => isWell({ process: 'node', name: 'dns', state, note });
  expect([of('ready'), of('standby'), of('starting'), of('ready', 'no upstream')]).toEqual([true, true, false, false]);
});

test('a certificate ends soon in its last two weeks', () => {
  const now = Date.parse('2030-01-01T00:00:00Z');
  const of = (end: string) => validity({ name: 'x', end }, now);
  expect([of('2030-02-01T00:00:00Z'), of('2030-01-10T00:00:00Z'), of('2029-12-31T00:00:00Z')]).toEqual(['valid', 'soon', 'expired']);
});
