import { newestFirst, type Event } from './events';
import { get, send } from './http';
import { samplesOf, type Sample } from './metrics';
import type { Condition, KubeObject, LooseObject } from './types';

/**
 * Driver contains the metrics that a node has recorded for a FlexVolume driver since the node
 * started.
 */
export interface Driver {
  node: string;
  name: string;
  calls: number;
  /** meanSeconds is NaN if there were no calls. */
  meanSeconds: number;
  inFlight: number;
  /**
   * failures contains the number of failed calls for each combination of operation and kind of
   * failure, such as mount and timeout.
   */
  failures: { operation: string; kind: string; count: number }[];
}

const prefix = 'slipway_flexvolume_operation';

/** driversOf parses a node's metrics. */
export function driversOf(node: string, metrics: string): Driver[] {
  const drivers = new Map<string, { samples: Sample[] }>();
  for (const sample of samplesOf(metrics, prefix)) {
    const name = sample.labels.driver ?? '';
    const driver = drivers.get(name) ?? { samples: [] };
    driver.samples.push(sample);
    drivers.set(name, driver);
  }
  return [...drivers]
    .map(([name, { samples }]) => {
      const sum = (metric: string) => samples.filter((sample) => sample.name === prefix + metric).reduce((total, sample) => total + sample.value, 0);
      const failures = samples
        .filter((sample) => sample.name === prefix + '_errors_total' && sample.value > 0)
        .map(({ labels, value }) => ({ operation: labels.operation ?? '', kind: labels.kind ?? '', count: value }));
      return { node, name, calls: sum('_seconds_count'), meanSeconds: sum('_seconds_sum') / sum('_seconds_count'), inFlight: sum('s_in_flight'), failures };
    })
    .sort((a, b) => a.name.localeCompare(b.name));
}

/**
 * Drivers contains the drivers on all nodes. unreachable contains the nodes that did not respond.
 */
export interface Drivers {
  drivers: Driver[];
  unreachable: { node: string; reason: string }[];
}

/** readDrivers reads the metrics of all nodes. */
export async function readDrivers(): Promise<Drivers> {
  const { items } = await get<{ items: KubeObject[] }>('/api/v1/nodes');
  const result: Drivers = { drivers: [], unreachable: [] };
  await Promise.all(
    items.map(async ({ metadata: { name } }) => {
      try {
        const response = await send('GET', `/api/v1/nodes/${encodeURIComponent(name)}/proxy/metrics`, undefined, { accept: 'text/plain' });
        result.drivers.push(...driversOf(name, await response.text()));
      } catch (error) {
        result.unreachable.push({ node: name, reason: (error as Error).message });
      }
    }),
  );
  return result;
}

/** failureReasons contains the reasons of events about volumes, claims and snapshots that fail. */
const failureReasons = [
  'FailedMount',
  'FailedAttachVolume',
  'FailedMapVolume',
  'FailedUnMount',
  'FailedDetachVolume',
  'ProvisioningFailed',
  'VolumeFailedDelete',
  'VolumeResizeFailed',
  'FileSystemResizeFailed',
  'SnapshotCreationFailed',
  'SnapshotContentCreationFailed',
  'SnapshotDeleteError',
  'FailedBinding',
  'ClaimMisbound',
  'VolumeMismatch',
];

/** waitReasons contains the reasons of events about claims that wait without a failure. */
const waitReasons = ['WaitForFirstConsumer', 'WaitForPodScheduled', 'ExternalProvisioning', 'Provisioning', 'Resizing', 'FileSystemResizeRequired'];

/** isVolumeFailure reports whether an event explains why a volume cannot be used or changed. */
export function isVolumeFailure(event: Event): boolean {
  return failureReasons.includes(event.reason ?? '');
}

/**
 * volumeEvents returns the events that explain why an object waits for its volumes: the failures,
 * newest first, or the newest event about a wait if there are no failures.
 */
export function volumeEvents(events: Event[]): Event[] {
  const failures = newestFirst(events.filter(isVolumeFailure));
  return failures.length > 0 ? failures : newestFirst(events.filter(({ reason }) => waitReasons.includes(reason ?? ''))).slice(0, 1);
}

/** isExpanding reports whether a claim requests a larger volume than it has. */
export function isExpanding({ status }: LooseObject): boolean {
  const conditions = (status as { conditions?: Condition[] } | undefined)?.conditions ?? [];
  return conditions.some(({ type, status }) => status === 'True' && /Resiz/.test(type));
}
