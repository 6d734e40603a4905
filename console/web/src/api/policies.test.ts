import { expect, test } from 'vitest';
import { allowances, describeSelector, type NetworkPolicy } from './policies';
import { selectsLabels } from './selector';

const policy = (name: string, spec: NetworkPolicy['spec']): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' },
  spec,
});

test('selectors have labels and expressions', () => {
  const selector = { matchLabels: { app: 'db' }, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }, { key: 'old', operator: 'DoesNotExist' }] };
  expect(selectsLabels(selector, { app: 'db', tier: 'a' })).toBe(true);
  expect(selectsLabels(selector, { app: 'db', tier: 'c' })).toBe(false);
  expect(selectsLabels(selector, { app: 'db', tier: 'a', old: '' })).toBe(false);
  expect(selectsLabels(undefined, {})).toBe(true);
  expect(describeSelector(selector)).toBe('app=db, tier in (a, b), !old');
});

test('pods without a policy are open', () => {
  expect(allowances([policy('p', { podSelector: { matchLabels: { app: 'web' } } })], { app: 'db' }, 'Ingress')).toBeUndefined();
});

test('a policy without rules allows nothing', () => {
  expect(allowances([policy('deny', { podSelector: {} })], { app: 'db' }, 'Ingress')).toEqual([]);
});

test('the rules of all policies add up', () => {
  const policies = [
    policy('web', { podSelector: {}, ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [{ port: 5432 }] }] }),
    policy('tools', {
      podSelector: { matchLabels: { app: 'db' } },
      ingress: [{ from: [{ namespaceSelector: { matchLabels: { name: 'tools' } }, podSelector: {} }, { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }] }, {}],
    }),
  ];
  expect(allowances(policies, { app: 'db' }, 'Ingress')).toEqual([
    { kind: 'Pods', peer: 'Pods with app=web', ports: '5432/TCP', policy: 'web' },
    { kind: 'Projects', peer: 'Projects with name=tools', ports: 'all ports', policy: 'tools' },
    { kind: 'Addresses', peer: '10.0.0.0/8 except 10.1.0.0/16', ports: 'all ports', policy: 'tools' },
    { kind: 'Source', peer: 'Everyone', ports: 'all ports', policy: 'tools' },
  ]);
});

test('outgoing connections are restricted only by egress policies', () => {
  const policies = [policy('in', { podSelector: {}, policyTypes: ['Ingress'] }), policy('out', { podSelector: {}, policyTypes: ['Egress'], egress: [{ to: [{ podSelector: {} }] }] })];
  expect(allowances(policies.slice(0, 1), {}, 'Egress')).toBeUndefined();
  expect(allowances(policies, {}, 'Egress')).toEqual([{ kind: 'Pods', peer: 'All pods of this project', ports: 'all ports', policy: 'out' }]);
});
