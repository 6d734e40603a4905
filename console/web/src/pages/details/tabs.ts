import type { ComponentType } from 'react';
import { lazy } from 'react';
import type { Resource } from '../../api/discovery';
import { jolokiaPort } from '../../api/jolokia';
import type { LooseObject } from '../../api/types';
import { persistent } from '../../app/load';
import { text } from '../../text/en';

/** TabProps are the properties that each tab of an object gets. */
export interface TabProps {
  resource: Resource;
  project: string | undefined;
  object: LooseObject;
}

/** Tab is a view of an object. */
export interface Tab {
  key: string;
  label: string;
  /** kinds are the kinds that have the tab. If it is missing, all kinds have the tab. */
  kinds?: string[];
  /**
   * applies reports whether an object of the kind has the tab. If it is missing, all objects have
   * the tab.
   */
  applies?: (object: LooseObject) => boolean;
  component: ComponentType<TabProps>;
}

const podOwners = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job', 'Node'];

/** logOwners are the kinds whose pods have logs, and which have no log of their own. */
const logOwners = podOwners.filter((kind) => kind !== 'Node');

/** templateOwners are the kinds whose pod template can be changed. */
const templateOwners = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet', 'CronJob'];

/** tabs are the tabs in their order. Each is loaded when it is opened. */
export const tabs: Tab[] = [
  { key: 'details', label: text.details.tabs.details, component: lazy(persistent(() => import('./Summary'))) },
  { key: 'pods', label: text.details.tabs.pods, kinds: podOwners, component: lazy(persistent(() => import('./Pods'))) },
  { key: 'history', label: text.details.tabs.history, kinds: ['Deployment', 'DeploymentConfig'], component: lazy(persistent(() => import('./History'))) },
  { key: 'logs', label: text.details.tabs.logs, kinds: ['Pod', 'Build', ...logOwners], component: lazy(persistent(() => import('./Logs'))) },
  { key: 'terminal', label: text.details.tabs.terminal, kinds: ['Pod'], component: lazy(persistent(() => import('./Terminal'))) },
  { key: 'files', label: text.details.tabs.files, kinds: ['Pod'], component: lazy(persistent(() => import('./Files'))) },
  { key: 'java', label: text.details.tabs.java, kinds: ['Pod'], applies: (pod) => jolokiaPort(pod) !== undefined, component: lazy(persistent(() => import('./Java'))) },
  { key: 'environment', label: text.details.tabs.environment, kinds: templateOwners, component: lazy(persistent(() => import('./Environment'))) },
  { key: 'traffic', label: text.details.tabs.traffic, kinds: ['Route'], component: lazy(persistent(() => import('./Traffic'))) },
  { key: 'settings', label: text.builds.settings, kinds: ['BuildConfig'], component: lazy(persistent(() => import('./BuildSettings'))) },
  { key: 'yaml', label: text.details.tabs.yaml, component: lazy(persistent(() => import('./Yaml'))) },
  { key: 'events', label: text.details.tabs.events, component: lazy(persistent(() => import('./Events'))) },
];

/** tabsOf returns the tabs of an object. */
export function tabsOf(object: LooseObject): Tab[] {
  return tabs.filter((tab) => (tab.kinds?.includes(object.kind) ?? true) && (tab.applies?.(object) ?? true));
}
