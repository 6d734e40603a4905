import { lazy, type ComponentType } from 'react';
import type { Resource } from '../../api/discovery';
import type { Rights } from '../../api/rights';
import type { LooseObject } from '../../api/types';
import { persistent } from '../../app/load';
import { edits } from '../../text/edits';
import { text } from '../../text/en';

/** DialogProps are what each dialog gets. path is the path of the object in the API. */
export interface DialogProps {
  object: LooseObject;
  path: string;
  close: () => void;
}

/** Dialog is an action with questions of its own. It is loaded when it is opened. */
export interface Dialog {
  key: string;
  label: string;
  applies: (object: LooseObject, resource: Resource, rights: Rights) => boolean;
  component: ComponentType<DialogProps>;
}

const podOwners = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet'];

/** editOf is a dialog for objects of some kinds that the user may change. */
function editOf(key: string, label: string, kinds: string[], load: () => Promise<{ default: ComponentType<DialogProps> }>): Dialog {
  return {
    key,
    label,
    applies: (object, resource, rights) => kinds.includes(object.kind) && rights.may('patch', resource.group, resource.name, object.metadata.name),
    component: lazy(persistent(load)),
  };
}

/** dialogs are all dialogs of objects, besides scale and delete, which many kinds have. */
export const dialogs: Dialog[] = [
  editOf('health', edits.health.action, podOwners, () => import('./edit/Health')),
  editOf('resources', edits.resources.action, podOwners, () => import('./edit/Resources')),
  editOf('lifecycle', edits.lifecycle.action, podOwners, () => import('./edit/Lifecycle')),
  editOf('strategy', edits.strategy.action, ['Deployment', 'DeploymentConfig'], () => import('./edit/Strategy')),
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
