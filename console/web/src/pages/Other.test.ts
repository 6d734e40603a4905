import { expect, it } from 'vitest';
import type { Resource } from '../api/discovery';
import { Rights } from '../api/rights';
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
