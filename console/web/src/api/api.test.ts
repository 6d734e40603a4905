import { describe, expect, it } from 'vitest';
import { pathOf, resourceOf, type Resource } from './discovery';
import { selects, summarize } from './pods';
import { validName } from './projects';
import { Rights } from './rights';
import { addressOf, admission, type Route } from './routes';
import type { Column, Row } from './types';

const route = (spec: Route['spec'], conditions: { type: string; status: string; reason?: string; message?: string }[] = []) =>
  ({ spec, status: { ingress: [{ conditions }] } }) as Route;

describe('addressOf', () => {
  it.each([
    [{ host: 'a.example.com' }, 'http://a.example.com'],
    [{ host: 'a.example.com', path: '/x y', tls: {} }, 'https://a.example.com/x%20y'],
    [{ host: 'javascript:alert(1)//' }, undefined],
    [{ host: 'a.example.com/@evil.example.com' }, undefined],
    [{ host: 'a@evil.example.com' }, undefined],
    [{}, undefined],
  ])('of %j is %j', (spec, want) => expect(addressOf(route(spec))).toBe(want));
});

describe('admission', () => {
  it('returns the reason of a router that rejects the route', () => {
    const refused = { type: 'Admitted', status: 'False', reason: 'HostAlreadyClaimed', message: 'another route has it' };
    expect(admission(route({}, [refused]))).toEqual({ admitted: false, reason: 'HostAlreadyClaimed: another route has it' });
    expect(admission(route({}, [{ type: 'Admitted', status: 'True' }]))).toEqual({ admitted: true, reason: '' });
    expect(admission({ spec: {} } as Route)).toEqual({ admitted: false, reason: '' });
  });
});

describe('Rights', () => {
  const rights = new Rights([
    { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', 'pods/log'] },
    { verbs: ['*'], apiGroups: ['apps'], resources: ['*'] },
    { verbs: ['update'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['mine'] },
    { verbs: ['patch'], apiGroups: ['build'], resources: ['*/scale'] },
  ]);
  it.each([
    ['list', '', 'pods', undefined, true],
    ['delete', '', 'pods', undefined, false],
    ['get', '', 'pods/exec', undefined, false],
    ['list', 'other', 'pods', undefined, false],
    ['delete', 'apps', 'deployments/scale', undefined, true],
    ['update', '', 'configmaps', 'mine', true],
    ['update', '', 'configmaps', 'other', false],
    ['update', '', 'configmaps', undefined, false],
    ['patch', 'build', 'things/scale', undefined, true],
    ['patch', 'build', 'things', undefined, false],
  ])('to %s %s/%s named %s are %s', (verb, group, resource, name, want) => expect(rights.may(verb, group, resource, name)).toBe(want));
});

describe('paths', () => {
  const pods: Resource = { id: 'pods', name: 'pods', group: '', version: 'v1', kind: 'Pod', singular: 'pod', namespaced: true, verbs: [], subresources: [] };
  const deployments = { ...pods, id: 'deployments.apps', name: 'deployments', group: 'apps', kind: 'Deployment' };
  it('escape names', () => {
    expect(pathOf(pods, 'a', '../../secrets')).toBe('/api/v1/namespaces/a/pods/..%2F..%2Fsecrets');
    expect(pathOf(deployments)).toBe('/apis/apps/v1/deployments');
  });
  it('are found by kind and group', () => {
    const all = new Map([pods, deployments].map((r) => [r.id, r]));
    expect(resourceOf(all, 'apps/v1', 'Deployment')).toBe(deployments);
    expect(resourceOf(all, 'v1', 'Deployment')).toBeUndefined();
  });
});

describe('pods', () => {
  const columns = ['Name', 'Ready', 'Status'].map((name) => ({ name }) as Column);
  const states = (rows: [string, string, string, string?][]) =>
    summarize({
      columns,
      loaded: true,
      connection: 'live',
      items: rows.map(([name, ready, status, deleted]) => ({ cells: [name, ready, status], metadata: { name, uid: name, deletionTimestamp: deleted } }) as unknown as Row),
    }).map((pod) => pod.state);
  it('have a state', () => {
    expect(
      states([
        ['a', '1/1', 'Running'],
        ['b', '0/1', 'Running'],
        ['c', '0/1', 'ContainerCreating'],
        ['d', '0/1', 'ImagePullBackOff'],
        ['e', '0/1', 'Completed'],
        ['f', '1/1', 'Running', '2026-01-01T00:00:00Z'],
        ['g', '0/1', 'Init:CrashLoopBackOff'],
        ['h', '0/1', 'OOMKilled'],
      ]),
    ).toEqual(['ready', 'notReady', 'pending', 'failed', 'completed', 'terminating', 'failed', 'failed']);
  });
  it('have restarted some time before their latest change', () => {
    const rows = ['0', '5 (3m20s ago)', '7 (2d3h ago)', '5'].map((cell) => ({ cells: [cell], metadata: { name: 'a', uid: 'a' } }) as unknown as Row);
    const pods = summarize({ columns: [{ name: 'Restarts' } as Column], loaded: true, connection: 'live', items: rows });
    expect(pods.map(({ restarts, sinceRestart }) => [restarts, sinceRestart])).toEqual([[0, undefined], [5, 200], [7, 183_600], [5, undefined]]);
  });
  it('are not selected by an empty selector', () => {
    expect(selects({}, { a: 'b' })).toBe(false);
    expect(selects({ a: 'b' }, { a: 'b', c: 'd' })).toBe(true);
    expect(selects({ a: 'b' }, { a: 'c' })).toBe(false);
  });
});

describe('validName', () => {
  it.each([
    ['ab', true],
    ['my-project-1', true],
    ['a', false],
    ['A-b', false],
    ['-ab', false],
    ['ab-', false],
    ['a.b', false],
    ['a'.repeat(64), false],
  ])('of %s is %s', (name, want) => expect(validName(name)).toBe(want));
});
