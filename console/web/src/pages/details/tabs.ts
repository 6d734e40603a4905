import type { ComponentType } from 'react';
import { lazy } from 'react';
import type { Resource } from '../../api/discovery';
import { revisedKinds } from '../../api/history';
import { jolokiaPort } from '../../api/jolokia';
import type { Rights } from '../../api/rights';
import type { LooseObject } from '../../api/types';
import { persistent } from '../../app/load';
import { text } from '../../text/en';

/** TabProps contains the properties of every tab. */
export interface TabProps {
  resource: Resource;
  project: string | undefined;
  object: LooseObject;
}

/** Tab is a view of an object. */
export interface Tab {
  key: string;
  label: string;
  /** kinds contains the kinds that have the tab. If it is undefined, all kinds have the tab. */
  kinds?: string[];
  /**
   * applies reports whether an object of these kinds has the tab. If it is undefined, all objects
   * of these kinds have the tab.
   */
  applies?: (object: LooseObject) => boolean;
  /** allowed reports whether the user may see the tab. If it is undefined, all users may see it. */
  allowed?: (object: LooseObject, rights: Rights) => boolean;
  component: ComponentType<TabProps>;
}

const podOwners = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job', 'Node'];

/** logOwners contains the kinds that have no log themselves, but whose pods have logs. */
const logOwners = podOwners.filter((kind) => kind !== 'Node');

/** environmentOwners contains the kinds whose environment variables users can change. */
const environmentOwners = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet', 'CronJob', 'BuildConfig'];

const mayExec = ({ metadata: { name } }: LooseObject, rights: Rights) => rights.may('create', '', 'pods/exec', name);

/** mayReadLog reports whether the user may read the log of a build, a pod or a workload's pods. */
const mayReadLog = ({ kind, metadata: { name } }: LooseObject, rights: Rights) =>
  kind === 'Build' ? rights.may('get', 'build.openshift.io', 'builds/log', name) : rights.may('get', '', 'pods/log', kind === 'Pod' ? name : undefined);

/** tabs contains the tabs in order. Each tab is loaded when it is first opened. */
export const tabs: Tab[] = [
  { key: 'details', label: text.details.tabs.details, component: lazy(persistent(() => import('./Summary'))) },
  { key: 'pods', label: text.details.tabs.pods, kinds: podOwners, component: lazy(persistent(() => import('./Pods'))) },
  { key: 'history', label: text.details.tabs.history, kinds: revisedKinds, component: lazy(persistent(() => import('./History'))) },
  { key: 'logs', label: text.details.tabs.logs, kinds: ['Pod', 'Build', ...logOwners], allowed: mayReadLog, component: lazy(persistent(() => import('./Logs'))) },
  { key: 'terminal', label: text.details.tabs.terminal, kinds: ['Pod'], allowed: mayExec, component: lazy(persistent(() => import('./Terminal'))) },
  { key: 'files', label: text.details.tabs.files, kinds: ['Pod'], allowed: mayExec, component: lazy(persistent(() => import('./Files'))) },
  { key: 'java', label: text.details.tabs.java, kinds: ['Pod'], applies: (pod) => jolokiaPort(pod) !== undefined, component: lazy(persistent(() => import('./Java'))) },
  { key: 'environment', label: text.details.tabs.environment, kinds: environmentOwners, component: lazy(persistent(() => import('./Environment'))) },
  { key: 'traffic', label: text.details.tabs.traffic, kinds: ['Route'], component: lazy(persistent(() => import('./Traffic'))) },
  { key: 'settings', label: text.builds.settings, kinds: ['BuildConfig'], component: lazy(persistent(() => import('./BuildSettings'))) },
  { key: 'yaml', label: text.details.tabs.yaml, component: lazy(persistent(() => import('./Yaml'))) },
  { key: 'events', label: text.details.tabs.events, component: lazy(persistent(() => import('./Events'))) },
];

/** tabsOf returns an object's tabs that the user may see. */
export function tabsOf(object: LooseObject, rights: Rights): Tab[] {
  return tabs.filter((tab) => (tab.kinds?.includes(object.kind) ?? true) && (tab.applies?.(object) ?? true) && (tab.allowed?.(object, rights) ?? true));
}
