import type { Resource } from './discovery';
import type { Condition, KubeObject } from './types';

/** Container contains the fields of a pod template's container that pages read. */
export interface Container {
  name: string;
  image?: string;
  env?: { name: string; value?: string; valueFrom?: unknown }[];
  ports?: { name?: string; containerPort: number; protocol?: string }[];
}

/** shortImage returns an image's name with the first 12 digits of its digest. */
export const shortImage = (image = '') => image.replace(/(@sha256:[0-9a-f]{12})[0-9a-f]+$/, '$1');

/** Workload is an object that runs pods from a template. */
export interface Workload extends KubeObject {
  spec: {
    replicas?: number;
    paused?: boolean;
    selector?: Record<string, string> & { matchLabels?: Record<string, string> };
    strategy?: { type?: string };
    template?: { metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }; spec?: { containers?: Container[] } };
  };
  status?: {
    replicas?: number;
    readyReplicas?: number;
    updatedReplicas?: number;
    desiredNumberScheduled?: number;
    numberReady?: number;
    latestVersion?: number;
    conditions?: Condition[];
  };
}

/** workloadIDs contains the workload resources, in the order of the overview. */
export const workloadIDs = ['deploymentconfigs.apps.openshift.io', 'deployments.apps', 'statefulsets.apps', 'daemonsets.apps'];

/** selectorOf returns the labels that select a workload's pods. */
export function selectorOf(workload: Workload): Record<string, string> {
  const selector = workload.spec.selector ?? {};
  return selector.matchLabels ?? (workload.kind === 'DeploymentConfig' || workload.kind === 'ReplicationController' ? selector : {});
}

/** desiredOf returns a workload's desired number of pods. */
export function desiredOf(workload: Workload): number {
  return workload.kind === 'DaemonSet' ? (workload.status?.desiredNumberScheduled ?? 0) : (workload.spec.replicas ?? 1);
}

/** isScalable reports whether users can set a workload's number of pods. */
export function isScalable(resource: Resource): boolean {
  return resource.subresources.includes('scale');
}

/** toSelector formats labels as a query parameter. */
export function toSelector(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}
