import { expect, test } from 'vitest';
import { grantsOf, type Binding } from './roles';

const binding = (uid: string, role: string, subjects: Binding['subjects'], namespace?: string): Binding => ({
  apiVersion: 'v1',
  kind: 'RoleBinding',
  metadata: { name: uid, namespace, uid, resourceVersion: '1', creationTimestamp: '' },
  roleRef: { kind: 'ClusterRole', name: role },
  subjects,
});

test('a user has the roles of their groups', () => {
  const bindings = [
    binding('a', 'admin', [{ kind: 'User', name: 'anna' }], 'shop'),
    binding('b', 'view', [{ kind: 'Group', name: 'testers' }, { kind: 'User', name: 'ben' }]),
    binding('c', 'edit', [{ kind: 'ServiceAccount', name: 'anna', namespace: 'shop' }], 'shop'),
    binding('d', 'none', null),
  ];
  expect(grantsOf(bindings, 'anna', ['testers']).map(({ role, project, group }) => [role, project, group])).toEqual([
    ['admin', 'shop', ''],
    ['view', '', 'testers'],
  ]);
  expect(grantsOf(bindings, '', ['testers']).map(({ role }) => role)).toEqual(['view']);
});
