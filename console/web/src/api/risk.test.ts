import { describe, expect, it } from 'vitest';
import type { Resource } from './discovery';
import { riskyObjects } from './risk';
import type { KubeObject } from './types';

const resource = (id: string, kind: string, group: string, namespaced: boolean): [string, Resource] => [
  id,
  { id, name: id.split('.')[0] ?? '', group, version: 'v1', kind, singular: '', namespaced, verbs: [], subresources: [] },
];

const resources = new Map([
  resource('services', 'Service', '', true),
  resource('namespaces', 'Namespace', '', false),
  resource('rolebindings.rbac.authorization.k8s.io', 'RoleBinding', 'rbac.authorization.k8s.io', true),
  resource('templateinstances.template.openshift.io', 'TemplateInstance', 'template.openshift.io', true),
]);

const object = (apiVersion: string, kind: string, namespace?: string): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name: 'app', namespace, uid: '', resourceVersion: '', creationTimestamp: '' },
});

describe('riskyObjects', () => {
  it.each([
    ['a service', object('v1', 'Service'), undefined],
    ['a service of the project', object('v1', 'Service', 'shop'), undefined],
    ['a service of another project', object('v1', 'Service', 'other'), 'project'],
    ['an object of the cluster', object('v1', 'Namespace'), 'cluster'],
    ['a role binding', object('rbac.authorization.k8s.io/v1', 'RoleBinding'), 'rights'],
    ['a role binding of the old API', object('v1', 'RoleBinding'), 'rights'],
    ['objects that a controller creates', object('template.openshift.io/v1', 'TemplateInstance'), 'rights'],
  ])('%s', (_, created, risk) => expect(riskyObjects([created], 'shop', resources).map((found) => found.risk)).toEqual(risk ? [risk] : []));

  it('trusts objects that administrators have excluded from the check', () => {
    const created = [object('rbac.authorization.k8s.io/v1', 'RoleBinding'), object('rbac.authorization.k8s.io/v1', 'RoleBinding', 'other'), object('template.openshift.io/v1', 'TemplateInstance')];
    expect(riskyObjects(created, 'shop', resources, ({ name }) => name === 'rolebindings').map((found) => found.risk)).toEqual(['project', 'rights']);
  });
});
