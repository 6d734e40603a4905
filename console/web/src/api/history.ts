import { pathOf } from './discovery';
import { patch, post, put, unchanged } from './http';
import { configKey } from './owners';
import type { KubeObject, LooseObject } from './types';
import type { Container } from './workloads';

interface Template {
  metadata?: { labels?: Record<string, string> };
  spec?: { containers?: Container[] };
}

/**
 * Revision is a current or earlier version of a workload's pod template: a ReplicaSet, a
 * ReplicationController or a ControllerRevision, which contains the template as a patch.
 */
export interface Revision extends KubeObject {
  spec?: { replicas?: number; template?: Template };
  data?: { spec?: { template?: Template & { $patch?: string } } };
  /** revision is the number of a ControllerRevision. */
  revision?: number;
}

/**
 * Included selects the parts of a revision that a rollback restores in addition to the pod
 * template.
 */
export interface Included {
  replicas: boolean;
  strategy: boolean;
  triggers: boolean;
}

const keys = {
  revision: 'deployment.kubernetes.io/revision',
  cause: 'kubernetes.io/change-cause',
  version: 'openshift.io/deployment-config.latest-version',
  phase: 'openshift.io/deployment.phase',
  reason: 'openshift.io/deployment.status-reason',
};

const annotation = (object: KubeObject, key: string) => object.metadata.annotations?.[key] ?? '';

export const numberOf = (revision: Revision) => revision.revision ?? Number(annotation(revision, keys.version) || annotation(revision, keys.revision) || 0);
export const phaseOf = (revision: KubeObject) => annotation(revision, keys.phase);
export const causeOf = (revision: Revision) => annotation(revision, keys.cause) || annotation(revision, keys.reason);

/** templateOf returns a revision's pod template. */
export function templateOf({ spec, data }: Revision): Template | undefined {
  const { $patch: _, ...template } = data?.spec?.template ?? {};
  return data ? template : spec?.template;
}

/** revisionIDs maps a workload's kind to the resource that contains its revisions. */
const revisionIDs: Record<string, string> = {
  DeploymentConfig: 'replicationcontrollers',
  Deployment: 'replicasets.apps',
  StatefulSet: 'controllerrevisions.apps',
  DaemonSet: 'controllerrevisions.apps',
};

/** revisedKinds contains the kinds that have revisions. */
export const revisedKinds = Object.keys(revisionIDs);

/** revisionsID returns the ID of the resource that contains a workload's revisions. */
export function revisionsID(object: LooseObject): string {
  return revisionIDs[object.kind] ?? '';
}

/** revisionsPath returns the path of the collection that contains a workload's revisions. */
export function revisionsPath(object: LooseObject): string {
  const [name = '', group = ''] = revisionsID(object).split('.');
  return pathOf({ name, group, version: 'v1', namespaced: true }, object.metadata.namespace);
}

/** revisionsOf returns a workload's revisions, newest first. */
export function revisionsOf(object: LooseObject, all: Revision[]): Revision[] {
  const { name, uid } = object.metadata;
  const isOwn = (revision: Revision) =>
    object.kind === 'DeploymentConfig' ? annotation(revision, configKey) === name : revision.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
  return all.filter(isOwn).sort((a, b) => numberOf(b) - numberOf(a));
}

const hashLabel = 'pod-template-hash';

/** rollBack restores the pod template of a workload's revision. */
export async function rollBack(path: string, object: LooseObject, to: Revision, included: Included): Promise<void> {
  if (object.kind === 'DeploymentConfig') {
    const spec = {
      from: { name: to.metadata.name },
      includeTemplate: true,
      includeReplicationMeta: included.replicas,
      includeStrategy: included.strategy,
      includeTriggers: included.triggers,
    };
    const request = { apiVersion: object.apiVersion, kind: 'DeploymentConfigRollback', name: object.metadata.name, spec };
    await put(path, await post(path + '/rollback', request, { repeatable: true }));
    return;
  }
  const template = templateOf(to);
  const { [hashLabel]: _, ...labels } = template?.metadata?.labels ?? {};
  await patch(path, [
    unchanged(object),
    { op: 'replace', path: '/spec/template', value: { ...template, metadata: { ...template?.metadata, labels } } },
  ]);
}
