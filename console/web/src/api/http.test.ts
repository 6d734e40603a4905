import { afterEach, describe, expect, it, vi } from 'vitest';
import { text } from '../text/en';
import { create, get, merge, patch, post, put, unchanged } from './http';

afterEach(() => vi.unstubAllGlobals());

/** network returns the given responses in order. A failure represents a network change. */
function network(...responses: (Response | 'failure')[]): string[] {
  const requests: string[] = [];
  vi.stubGlobal('fetch', (address: string, init: RequestInit) => {
    requests.push(`${init.method} ${address}`);
    const response = responses.shift() ?? 'failure';
    return response === 'failure' ? Promise.reject(new TypeError('Failed to fetch')) : Promise.resolve(response);
  });
  return requests;
}

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), { status });

describe('A network that changes', () => {
  it('has no effect on requests that can be repeated', async () => {
    const requests = network('failure', 'failure', json({ a: 1 }), 'failure', json({ a: 2 }));
    expect(await get('/api/v1/pods')).toEqual({ a: 1 });
    expect(await merge('/api/v1/pods/a', {})).toEqual({ a: 2 });
    expect(requests).toHaveLength(5);
  });

  it('does not repeat requests that could have an effect twice', async () => {
    const requests = network('failure');
    await expect(post('/apis/build/instantiate', {})).rejects.toThrow(text.failure.unknownOutcome);
    expect(requests).toHaveLength(1);
  });

  it('creates an object once', async () => {
    const requests = network('failure', json({ kind: 'Status', reason: 'AlreadyExists', message: 'exists' }, 409), json({ metadata: { name: 'a' } }));
    expect(await create('/api/v1/things', 'a', {})).toEqual({ metadata: { name: 'a' } });
    expect(requests[2]).toBe('GET /console/proxy/api/v1/things/a');
  });

  it('reports that an object exists', async () => {
    network(json({ kind: 'Status', reason: 'AlreadyExists', message: 'it exists' }, 409));
    await expect(create('/api/v1/things', 'a', {})).rejects.toThrow('it exists');
  });
});

describe('A change to an object that has changed since it was read', () => {
  const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'a', uid: '1', resourceVersion: '7', creationTimestamp: '' } };
  const failedPatch = { kind: 'Status', reason: 'Invalid', message: 'the server rejected our request due to an error in our request' };
  const conflict = (kind: string, name: string) => json({ kind: 'Status', reason: 'Conflict', message: `${kind} ${name} has changed`, details: { kind, name } }, 409);

  it('is rejected as a conflict', async () => {
    network(conflict('things', 'a:b'), conflict('things', 'a'), json(failedPatch, 422));
    await expect(put('/api/v1/things/a%3Ab', object)).rejects.toThrow(text.failure.conflict);
    await expect(put('/api/v1/things/a?dryRun=All', object)).rejects.toThrow(text.failure.conflict);
    await expect(patch('/api/v1/things/a', [unchanged(object)])).rejects.toThrow(text.failure.conflict);
  });

  it('differs from a conflict about another object', async () => {
    network(conflict('resourcequotas', 'a'), conflict('namespaces', 'a'), json({ kind: 'Status', reason: 'Conflict', message: 'a proxy refuses' }, 409));
    await expect(put('/api/v1/things/a', object)).rejects.toThrow('resourcequotas a has changed');
    await expect(put('/api/v1/namespaces/a/things/a', object)).rejects.toThrow('namespaces a has changed');
    await expect(put('/api/v1/things/a', object)).rejects.toThrow('a proxy refuses');
  });

  it('differs from an invalid change', async () => {
    network(json({ ...failedPatch, message: 'admission webhook "size" denied the request' }, 422), json(failedPatch, 422));
    await expect(patch('/api/v1/things/a', [unchanged(object)])).rejects.toThrow('admission webhook "size" denied the request');
    await expect(patch('/api/v1/things/a', [{ op: 'remove', path: '/spec' }])).rejects.toThrow(failedPatch.message);
  });
});
