import { lazy, type ComponentType } from 'react';
import type { Resource } from '../../api/discovery';
import type { Rights } from '../../api/rights';
import type { LooseObject } from '../../api/types';
import { persistent } from '../../app/load';
import { attach } from '../../text/attach';
import { edits } from '../../text/edits';
import { text } from '../../text/en';
import { sourceOfKind } from './edit/sources';

/** DialogProps contains the properties of every dialog. path is the object's path in the API. */
export interface DialogProps {
  object: LooseObject;
  path: string;
  close: () => void;
}

/** Dialog is an action that has its own form. The form is loaded when it is first opened. */
export interface Dialog {
  key: string;
  label: string;
  applies: (object: LooseObject, resource: Resource, rights: Rights) => boolean;
  component: ComponentType<DialogProps>;
}

const podOwners = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet'];

/** editOf returns a dialog for objects of certain kinds that the user may change. */
function editOf(key: string, label: string, kinds: string[], load: () => Promise<{ default: ComponentType<DialogProps> }>): Dialog {
  return {
    key,
    label,
    applies: (object, resource, rights) => kinds.includes(object.kind) && rights.may('patch', resource.group, resource.name, object.metadata.name),
    component: lazy(persistent(load)),
  };
}

const dataEdit = editOf('data', edits.data.action, ['ConfigMap', 'Secret'], () => import('./edit/Data'));

/** dialogs contains all dialogs for objects, except scale and delete, which many kinds have. */
export const dialogs: Dialog[] = [
  editOf('health', edits.health.action, podOwners, () => import('./edit/Health')),
  editOf('resources', edits.resources.action, podOwners, () => import('./edit/Resources')),
  editOf('lifecycle', edits.lifecycle.action, podOwners, () => import('./edit/Lifecycle')),
  editOf('strategy', edits.strategy.action, ['Deployment', 'DeploymentConfig'], () => import('./edit/Strategy')),
  editOf('triggers', edits.triggers.action, ['DeploymentConfig'], () => import('./edit/Triggers')),
  editOf('route', edits.route.action, ['Route'], () => import('./edit/Route')),
  editOf('autoscaler', edits.autoscaler.action, ['HorizontalPodAutoscaler'], () => import('./edit/Autoscaler')),
  { ...dataEdit, applies: (object, resource, rights) => object.immutable !== true && dataEdit.applies(object, resource, rights) },
  editOf('attach', attach.action, podOwners, () => import('./edit/Attach')),
  editOf('link-secret', attach.link.action, ['ServiceAccount'], () => import('./edit/LinkSecret')),
  editOf('service', text.services.update, ['ServiceInstance'], () => import('./edit/ServiceUpdate')),
  {
    key: 'bind',
    label: text.services.bindAction,
    applies: (object, resource, rights) => object.kind === 'ServiceInstance' && rights.may('create', resource.group, 'servicebindings'),
    component: lazy(persistent(() => import('./edit/Bind'))),
  },
  editOf('expand', attach.expand.action, ['PersistentVolumeClaim'], () => import('./edit/Expand')),
  {
    key: 'add-to',
    label: attach.toApplication,
    applies: (object, _, rights) => object.kind in sourceOfKind && (rights.may('patch', 'apps', 'deployments') || rights.may('patch', 'apps.openshift.io', 'deploymentconfigs')),
    component: lazy(persistent(() => import('./edit/AddTo'))),
  },
  {
    key: 'drain',
    label: text.workload.drain,
    applies: (object, resource, rights) => object.kind === 'Node' && rights.may('patch', resource.group, resource.name, object.metadata.name) && rights.may('create', '', 'pods/eviction'),
    component: lazy(persistent(() => import('./node/Drain'))),
  },
  {
    key: 'debug',
    label: text.workload.debug,
    applies: (object, _, rights) => (object.kind === 'Pod' || podOwners.includes(object.kind)) && rights.may('create', '', 'pods') && rights.may('create', '', 'pods/exec'),
    component: lazy(persistent(() => import('./Debug'))),
  },
  {
    key: 'idle',
    label: text.workload.idle,
    applies: (object, _, rights) => object.kind === 'Service' && rights.may('patch', '', 'endpoints'),
    component: lazy(persistent(() => import('./Idle'))),
  },
];
