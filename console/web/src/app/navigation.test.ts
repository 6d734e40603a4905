import { expect, it } from 'vitest';
import type { Resource, Resources } from '../api/discovery';
import { Rights } from '../api/rights';
import { mayImport } from './navigation';

const resource = (id: string, namespaced: boolean, verbs: string[]): [string, Resource] => [id, { id, name: id, group: '', namespaced, verbs } as unknown as Resource];
const resources: Resources = new Map([
  resource('secrets', true, ['create', 'delete']),
  resource('groups', false, ['create', 'delete']),
  resource('reviews', false, ['create']),
]);

it.each([
  ['secrets', true, false],
  ['groups', false, true],
  ['reviews', false, false],
])('offers an import to a user who may create %s', (name, inProject, inCluster) => {
  const rights = new Rights([{ verbs: ['create'], apiGroups: [''], resources: [name] }]);
  expect([mayImport('shop', resources, rights), mayImport(undefined, resources, rights)]).toEqual([inProject, inCluster]);
});
