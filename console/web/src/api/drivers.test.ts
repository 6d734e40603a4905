import { expect, it } from 'vitest';
import { driversOf, isExpanding, isVolumeFailure, volumeEvents } from './drivers';
import type { Event } from './events';
import { samplesOf } from './metrics';
import type { LooseObject } from './types';

const metrics = `# HELP slipway_flexvolume_operation_seconds Duration
# TYPE slipway_flexvolume_operation_seconds histogram
slipway_flexvolume_operation_seconds_bucket{driver="example.com/a",operation="mount",status="success",le="+Inf"} 3
slipway_flexvolume_operation_seconds_sum{driver="example.com/a",operation="mount",status="success"} 1.5
slipway_flexvolume_operation_seconds_count{driver="example.com/a",operation="mount",status="success"} 3
slipway_flexvolume_operation_seconds_sum{driver="example.com/a",operation="mount",status="error"} 0.5
slipway_flexvolume_operation_seconds_count{driver="example.com/a",operation="mount",status="error"} 1
slipway_flexvolume_operation_errors_total{driver="example.com/a",operation="mount",kind="timeout"} 1
slipway_flexvolume_operation_errors_total{driver="example.com/a",operation="init",kind="failure"} 0
slipway_flexvolume_operations_in_flight{driver="example.com/a",operation="mount"} 2
slipway_flexvolume_scans_total{status="success"} 9
`;

it('reads the calls, errors and mean time of each driver', () => {
  expect(driversOf('node-1', metrics)).toEqual([
    { node: 'node-1', name: 'example.com/a', calls: 4, meanSeconds: 0.5, inFlight: 2, failures: [{ operation: 'mount', kind: 'timeout', count: 1 }] },
  ]);
});

it('reads labels with quotes, backslashes and braces', () => {
  expect(samplesOf('a{b="x\\"y\\\\n",c="}"} 1e3\n', 'a')).toEqual([{ name: 'a', labels: { b: 'x"y\\n', c: '}' }, value: 1000 }]);
});

const event = (reason: string, lastTimestamp: string) => ({ reason, lastTimestamp, metadata: { creationTimestamp: '' } }) as Event;

it.each([
  ['ProvisioningFailed', true],
  ['FailedDetachVolume', true],
  ['SnapshotCreationFailed', true],
  ['WaitForFirstConsumer', false],
  ['Scheduled', false],
])('recognizes failures of volumes, claims and snapshots: %s', (reason, want) => expect(isVolumeFailure(event(reason, '1'))).toBe(want));

it('explains why a claim waits: by failures, or by the newest event about a wait', () => {
  const waits = [event('ExternalProvisioning', '2'), event('Pulled', '4'), event('WaitForFirstConsumer', '1')];
  expect(volumeEvents(waits).map(({ reason }) => reason)).toEqual(['ExternalProvisioning']);
  expect(volumeEvents([...waits, event('ProvisioningFailed', '2'), event('FailedBinding', '3')]).map(({ reason }) => reason)).toEqual(['FailedBinding', 'ProvisioningFailed']);
});

it('recognizes claims that expand', () => {
  const claim = (type: string, status: string) => ({ status: { conditions: [{ type, status }] } }) as unknown as LooseObject;
  expect([claim('FileSystemResizePending', 'True'), claim('Resizing', 'False'), {} as LooseObject].map(isExpanding)).toEqual([true, false, false]);
});
