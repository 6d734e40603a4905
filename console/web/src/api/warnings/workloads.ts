import { warnings as t } from '../../text/warnings';
import { lastSeen } from '../events';
import { numberOf, phaseOf, revisionsOf, type Revision } from '../history';
import { isAlone, isOwned } from '../owners';
import { isBare } from '../pods';
import { selectorIndex, type LabelSelector } from '../selector';
import type { Condition, KubeObject } from '../types';
import { ids, listOf, type State, type Warning } from './state';

interface PodSpec {
  containers?: { readinessProbe?: object; livenessProbe?: object }[];
  volumes?: { secret?: { secretName?: string; optional?: boolean } }[];
}

interface Controller extends KubeObject {
  spec: { replicas?: number; selector?: LabelSelector | Record<string, string>; template?: { spec?: PodSpec } };
  status?: { replicas?: number; desiredNumberScheduled?: number; currentNumberScheduled?: number; active?: number; succeeded?: number; conditions?: Condition[] };
}

const cancelledKey = 'openshift.io/deployment.cancelled';
const createErrorKey = 'openshift.io/deployer-pod.create-error';

/**
 * refusalPeriod is how long, in milliseconds, an event explains why a controller lacks pods.
 * Controllers wait at most 1000 seconds before they try again.
 */
const refusalPeriod = 20 * 60_000;

/**
 * deploymentWarnings finds deployment configurations whose latest deployment has failed. The reason
 * is in the log of the deployer pod while that pod exists.
 */
export function deploymentWarnings(state: State): Warning[] {
  const controllers = listOf<Revision>(state, ids.controllers);
  return (state.of(ids.configs) ?? []).flatMap((config): Warning[] => {
    const { name } = config.metadata;
    const [latest] = revisionsOf(config, controllers);
    if (!latest || phaseOf(latest) !== 'Failed' || latest.metadata.annotations?.[cancelledKey] === 'true') {
      return [];
    }
    const deployer = `${latest.metadata.name}-deploy`;
    const version = String(numberOf(latest));
    return state.pods.some((pod) => pod.name === deployer)
      ? [{ level: 'error', resource: 'pods', name: deployer, tab: 'logs', ...t.failedDeployer(name, version) }]
      : [{ level: 'error', resource: ids.configs, name, tab: 'history', ...t.failedDeployment(version) }];
  });
}

/** createFailure returns the reason why a controller's pods cannot be created, or "". */
function createFailure(controller: Controller): string {
  const deployer = ['', 'New'].includes(phaseOf(controller)) ? controller.metadata.annotations?.[createErrorKey] : undefined;
  return deployer ?? controller.status?.conditions?.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True')?.message ?? '';
}

/** lacksPods reports whether a controller without conditions has fewer pods than it needs. */
function lacksPods({ kind, spec, status = {} }: Controller): boolean {
  switch (kind) {
    case 'StatefulSet':
      return (status.replicas ?? 0) < (spec.replicas ?? 1);
    case 'DaemonSet':
      return (status.currentNumberScheduled ?? 0) < (status.desiredNumberScheduled ?? 0);
    default:
      return !status.active && !status.succeeded && !status.conditions?.some(({ status }) => status === 'True');
  }
}

/** refusalWarnings finds objects whose pods cannot be created, for instance because of a quota. */
export function refusalWarnings(state: State): Warning[] {
  const reported = [ids.controllers, ids.deployments, ids.replicaSets].flatMap((id) =>
    listOf<Controller>(state, id)
      .filter((controller) => !isOwned(controller) || id !== ids.replicaSets)
      .map((controller) => ({ resource: id, name: controller.metadata.name, reason: createFailure(controller) })),
  );
  const refusals = state.refusals.filter((event) => Date.now() - Date.parse(lastSeen(event)) < refusalPeriod);
  const fromEvents = [ids.statefulSets, ids.daemonSets, ids.jobs].flatMap((id) =>
    listOf<Controller>(state, id)
      .filter(lacksPods)
      .map(({ metadata: { uid, name } }) => ({ resource: id, name, reason: refusals.find(({ involvedObject }) => involvedObject.uid === uid)?.message ?? '' })),
  );
  const builds = listOf<KubeObject & { status?: { phase?: string; reason?: string; message?: string } }>(state, ids.builds)
    .filter(({ status }) => status?.phase === 'New' && status.reason === 'CannotCreateBuildPod')
    .map(({ metadata: { name }, status }) => ({ resource: ids.builds, name, reason: status?.message ?? '' }));
  return [...reported, ...fromEvents, ...builds].filter(({ reason }) => reason !== '').map(({ resource, name, reason }): Warning => ({ level: 'error', resource, name, ...t.noPods(reason) }));
}

/**
 * overlapWarnings finds controllers that select the same pod. These controllers count each other's
 * pods.
 */
export function overlapWarnings(state: State): Warning[] {
  const selectors = [ids.controllers, ids.replicaSets, ids.statefulSets, ids.daemonSets].flatMap((resource) =>
    listOf<Controller>(state, resource).flatMap(({ kind, metadata: { name }, spec }) => {
      const selector: LabelSelector = resource === ids.controllers ? { matchLabels: spec.selector as Record<string, string> | undefined } : (spec.selector ?? {});
      const isEmpty = Object.keys(selector.matchLabels ?? {}).length === 0 && !selector.matchExpressions?.length;
      return isEmpty ? [] : [{ resource, name, label: `${kind} ${name}`, selector }];
    }),
  );
  const selecting = selectorIndex(selectors);
  const pairs = new Map<string, Warning>();
  for (const pod of state.pods) {
    const [first, ...others] = selecting(pod.labels);
    for (const other of others) {
      const { resource, name, label } = first as (typeof selectors)[number];
      const pair = `${label} ${other.label}`;
      pairs.set(pair, pairs.get(pair) ?? { level: 'warning', resource, name, ...t.overlap(other.label, pod.name) });
    }
  }
  return [...pairs.values()];
}

/** partsOf returns the objects that run pods, with the specs of these pods. */
function partsOf(state: State): { resource: string; name: string; spec: PodSpec }[] {
  return [ids.configs, ids.deployments, ids.statefulSets, ids.daemonSets, ids.controllers, ids.replicaSets].flatMap((resource) =>
    listOf<Controller>(state, resource)
      .filter(isAlone)
      .map(({ metadata: { name }, spec }) => ({ resource, name, spec: spec.template?.spec ?? {} })),
  );
}

/** templateWarnings finds volumes of missing secrets, and pod templates without probes. */
export function templateWarnings(state: State): Warning[] {
  const bare = state.waiting.filter(isBare).map(({ metadata: { name }, spec }) => ({ resource: 'pods', name, spec: spec as PodSpec }));
  const parts = partsOf(state);
  const missing = [...parts, ...bare].flatMap(({ resource, name, spec }) =>
    (spec.volumes ?? [])
      .filter(({ secret }) => secret && !secret.optional && state.secrets && !state.secrets.has(secret.secretName ?? ''))
      .map(({ secret }): Warning => ({ level: 'warning', resource, name, ...t.noSecret(secret?.secretName ?? '') })),
  );
  const lacks = ({ containers = [] }: PodSpec, probe: 'readinessProbe' | 'livenessProbe') => containers.length > 0 && containers.every((container) => !container[probe]);
  return [
    ...missing,
    ...parts.filter(({ resource, spec }) => resource === ids.configs && lacks(spec, 'readinessProbe')).map(({ resource, name }): Warning => ({ level: 'warning', resource, name, ...t.noReadiness() })),
    ...parts.filter(({ spec }) => lacks(spec, 'livenessProbe')).map(({ resource, name }): Warning => ({ level: 'info', resource, name, ...t.noLiveness() })),
  ];
}
