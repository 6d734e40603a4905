import type { Advice } from '../../text/warnings';
import type { Event } from '../events';
import type { PodSummary } from '../pods';
import type { KubeObject, LooseObject } from '../types';

/** levels contains the severities of warnings, most severe first. */
export const levels = ['error', 'warning', 'info'] as const;

/** Warning is an object's problem, with its remedy. */
export interface Warning extends Advice {
  level: (typeof levels)[number];
  /** resource and name identify the object. */
  resource: string;
  name: string;
  /** tab is the tab of the object's page that shows the reason. */
  tab?: string;
}

/** ids contains the resources that the rules examine. */
export const ids = {
  services: 'services',
  routes: 'routes.route.openshift.io',
  configs: 'deploymentconfigs.apps.openshift.io',
  deployments: 'deployments.apps',
  replicaSets: 'replicasets.apps',
  statefulSets: 'statefulsets.apps',
  daemonSets: 'daemonsets.apps',
  jobs: 'jobs.batch',
  controllers: 'replicationcontrollers',
  buildConfigs: 'buildconfigs.build.openshift.io',
  builds: 'builds.build.openshift.io',
  streams: 'imagestreams.image.openshift.io',
  scalers: 'horizontalpodautoscalers.autoscaling',
};

/** State contains a project's objects. */
export interface State {
  project: string;
  /** of returns a resource's objects. It returns undefined if they could not be read. */
  of: (id: string) => LooseObject[] | undefined;
  pods: PodSummary[];
  /** waiting contains the pods whose phase is Pending. */
  waiting: LooseObject[];
  /** secrets contains the names of all secrets, or is undefined if they could not be read. */
  secrets?: ReadonlySet<string>;
  /** refusals contains the events about pods that could not be created. */
  refusals: Event[];
  /** mounts contains the events about volumes that could not be mounted, newest first. */
  mounts?: Event[];
}

/** listOf returns a resource's objects, or an empty list if they could not be read. */
export function listOf<T extends KubeObject>(state: State, id: string): T[] {
  return (state.of(id) ?? []) as unknown as T[];
}

/** Reference is a reference to a tag of an image stream or to another image. */
export interface Reference {
  kind?: string;
  name?: string;
  namespace?: string;
}
