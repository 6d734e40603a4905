import { pathOf, type Resource, type Resources } from '../../api/discovery';
import { merge, post } from '../../api/http';
import type { Rights } from '../../api/rights';
import { cancel, isDeploying } from '../../api/rollout';
import type { LooseObject } from '../../api/types';
import { edits } from '../../text/edits';
import { text } from '../../text/en';
import { rollout } from '../../text/rollout';

/** Action is an operation on an object. */
export interface Action {
  label: string;
  run: () => Promise<unknown>;
}

/** LinkAction is an action that has its own page. */
export interface LinkAction {
  label: string;
  to: string;
}

/**
 * Creation is a form that creates an object from an existing object of certain kinds. key returns
 * the form field that receives the existing object's name.
 */
interface Creation {
  kinds: string[];
  label: string;
  form: { group: string; name: string };
  key: (kind: string) => string;
  /** more contains additional fields that the link sets. */
  more?: (kind: string) => Record<string, string>;
}

const creations: Creation[] = [
  { kinds: ['PersistentVolumeClaim'], label: edits.snapshot.create, form: { group: 'snapshot.storage.k8s.io', name: 'volumesnapshots' }, key: () => 'claim' },
  { kinds: ['VolumeSnapshot'], label: edits.snapshot.restore, form: { group: '', name: 'persistentvolumeclaims' }, key: () => 'snapshot' },
  { kinds: ['Service'], label: rollout.route, form: { group: 'route.openshift.io', name: 'routes' }, key: () => 'service' },
  {
    kinds: ['Deployment', 'DeploymentConfig', 'StatefulSet'],
    label: rollout.autoscaler,
    form: { group: 'autoscaling', name: 'horizontalpodautoscalers' },
    key: (kind) => `target${kind}`,
    more: (kind) => ({ kind }),
  },
];

/** linksOf returns links to the pages for actions that the user may perform on an object. */
export function linksOf(object: LooseObject, resources: Resources | undefined, rights: Rights): LinkAction[] {
  const { name, namespace } = object.metadata;
  return creations.flatMap(({ kinds, label, form, key, more }) => {
    const id = form.group === '' ? form.name : `${form.name}.${form.group}`;
    if (!kinds.includes(object.kind) || !resources?.has(id) || !rights.may('create', form.group, form.name)) {
      return [];
    }
    const query = new URLSearchParams({ ...more?.(object.kind), [key(object.kind)]: name });
    return [{ label, to: `/project/${namespace}/create/${id}?${query}` }];
  });
}

const restartedKey = 'kubectl.kubernetes.io/restartedAt';
const runningBuilds = ['New', 'Pending', 'Running'];

/** actionsOf returns the actions that the user may perform on an object. */
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
      if (isDeploying(object) && rights.may('patch', '', 'replicationcontrollers')) {
        actions.push({ label: rollout.cancel, run: () => cancel(object) });
      }
      break;
    case 'BuildConfig':
      if (mayUse('instantiate')) {
        const request = { kind: 'BuildRequest', apiVersion: object.apiVersion, metadata: { name } };
        actions.push({ label: text.workload.startBuild, run: () => post(path + '/instantiate', request) });
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
