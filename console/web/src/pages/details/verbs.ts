import { pathOf, type Resource, type Resources } from '../../api/discovery';
import { create, merge, post } from '../../api/http';
import type { Rights } from '../../api/rights';
import { bindingOf } from '../../api/services';
import type { LooseObject } from '../../api/types';
import { edits } from '../../text/edits';
import { text } from '../../text/en';

/** Action is something that can be done with an object. */
export interface Action {
  label: string;
  run: () => Promise<unknown>;
}

/** LinkAction is an action with a page of its own. */
export interface LinkAction {
  label: string;
  to: string;
}

const snapshots = { group: 'snapshot.storage.k8s.io', name: 'volumesnapshots' };

/** linksOf returns the pages for actions with an object that the user may do. */
export function linksOf(object: LooseObject, resources: Resources | undefined, rights: Rights): LinkAction[] {
  const { name, namespace } = object.metadata;
  const to = (form: string, key: string) => `/project/${namespace}/create/${form}?${key}=${encodeURIComponent(name)}`;
  const id = `${snapshots.name}.${snapshots.group}`;
  if (object.kind === 'PersistentVolumeClaim' && resources?.has(id) && rights.may('create', snapshots.group, snapshots.name)) {
    return [{ label: edits.snapshot.create, to: to(id, 'claim') }];
  }
  if (object.kind === 'VolumeSnapshot' && rights.may('create', '', 'persistentvolumeclaims')) {
    return [{ label: edits.snapshot.restore, to: to('persistentvolumeclaims', 'snapshot') }];
  }
  return [];
}

const restartedKey = 'kubectl.kubernetes.io/restartedAt';
const runningBuilds = ['New', 'Pending', 'Running'];

/** actionsOf returns the actions of an object's kind that the user may do. */
export function actionsOf(object: LooseObject, resource: Resource, rights: Rights): Action[] {
  const name = object.metadata.name;
  const path = pathOf(resource, object.metadata.namespace, name);
  const mayPatch = rights.may('patch', resource.group, resource.name, name);
  const mayUse = (subresource: string) => rights.may('create', resource.group, `${resource.name}/${subresource}`, name);
  const spec = (object.spec ?? {}) as { paused?: boolean; unschedulable?: boolean };
  const actions: Action[] = [];
  switch (object.kind) {
    case 'Deployment':
    case 'StatefulSet':
    case 'DaemonSet':
      if (mayPatch) {
        const annotations = { [restartedKey]: new Date().toISOString() };
        actions.push({ label: text.workload.restart, run: () => merge(path, { spec: { template: { metadata: { annotations } } } }) });
      }
      break;
    case 'DeploymentConfig':
      if (mayUse('instantiate')) {
        const request = { kind: 'DeploymentRequest', apiVersion: object.apiVersion, name, latest: true, force: true };
        actions.push({ label: text.workload.deploy, run: () => post(path + '/instantiate', request) });
      }
      break;
    case 'BuildConfig':
      if (mayUse('instantiate')) {
        const request = { kind: 'BuildRequest', apiVersion: object.apiVersion, metadata: { name } };
        actions.push({ label: text.workload.startBuild, run: () => post(path + '/instantiate', request) });
      }
      break;
    case 'ServiceInstance':
      if (rights.may('create', resource.group, 'servicebindings')) {
        const collection = pathOf({ ...resource, name: 'servicebindings' }, object.metadata.namespace);
        actions.push({ label: text.services.bindAction, run: () => create(collection, name, bindingOf(name)) });
      }
      break;
    case 'Build':
      if (mayUse('clone')) {
        const request = { kind: 'BuildRequest', apiVersion: object.apiVersion, metadata: { name } };
        actions.push({ label: text.workload.rebuild, run: () => post(path + '/clone', request) });
      }
      if (mayPatch && runningBuilds.includes((object.status as { phase?: string } | undefined)?.phase ?? '')) {
        actions.push({ label: text.workload.cancelBuild, run: () => merge(path, { status: { cancelled: true } }) });
      }
      break;
    case 'Node':
      if (mayPatch) {
        const unschedulable = spec.unschedulable === true;
        actions.push({ label: unschedulable ? text.workload.uncordon : text.workload.cordon, run: () => merge(path, { spec: { unschedulable: unschedulable ? null : true } }) });
      }
      break;
  }
  if (['Deployment', 'DeploymentConfig'].includes(object.kind) && mayPatch) {
    actions.push({ label: spec.paused ? text.workload.resume : text.workload.pause, run: () => merge(path, { spec: { paused: !spec.paused } }) });
  }
  return actions;
}
