import { expect, it } from 'vitest';
import type { Resource } from '../api/discovery';
import { Rights } from '../api/rights';
import { label } from '../app/navigation';
import { listed } from './Other';

const resource = (name: string, group: string, kind: string, namespaced: boolean, verbs = ['list', 'get']): Resource => ({
  id: group === '' ? name : `${name}.${group}`, name, group, kind, namespaced, verbs, version: 'v1', singular: '', subresources: [],
});
const all = [
  resource('pods', '', 'Pod', true),
  resource('backups', 'example.com', 'Backup', true),
  resource('reviews', 'example.com', 'Review', true, ['create']),
  resource('nodes', '', 'Node', false),
  resource('secrets', '', 'Secret', true),
];
const resources = new Map(all.map((r) => [r.id, r]));
const rights = new Rights([{ verbs: ['list'], apiGroups: ['', 'example.com'], resources: ['pods', 'backups', 'reviews', 'nodes'] }]);
const ids = (inProject: boolean, filter: string) => listed(resources, rights, inProject, filter).map(({ id }) => id);

it('lists the types of a project that the user may list', () => {
  expect(ids(true, '')).toEqual(['backups.example.com', 'pods']);
});

it('lists all types in the cluster', () => {
  expect(ids(false, '')).toEqual(['backups.example.com', 'nodes', 'pods']);
});

it('finds types by kind or group', () => {
  expect([ids(false, 'EXAMPLE.com'), ids(false, 'nod'), ids(false, 'nothing')]).toEqual([['backups.example.com'], ['nodes'], []]);
});

it('names resources in the plural', () => {
  const kinds = [['endpoints', '', 'Endpoints'], ['pods', 'metrics.k8s.io', 'PodMetrics'], ['networkpolicies', 'networking.k8s.io', 'NetworkPolicy'], ['ingressclasses', 'networking.k8s.io', 'IngressClass']];
  const named = kinds.map(([name = '', group = '', kind = '']) => resource(name, group, kind, true));
  const labels = named.map(({ id }) => label(id, new Map(named.map((r) => [r.id, r]))));
  expect(labels).toEqual(['Endpoints', 'Pod Metrics', 'Network Policies', 'Ingress Classes']);
});

it('omits the kinds that scripts hide', () => {
  window.OPENSHIFT_CONSTANTS = { AVAILABLE_KINDS_BLACKLIST: ['Backup'] };
  expect(ids(true, '')).toEqual(['pods']);
  delete window.OPENSHIFT_CONSTANTS;
});
