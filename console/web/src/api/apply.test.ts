import { afterEach, expect, it, vi } from 'vitest';
import { apply } from './apply';
import { text } from '../text/en';
import type { Resource } from './discovery';

afterEach(() => vi.unstubAllGlobals());

const services = { id: 'services', group: '', version: 'v1', name: 'services', kind: 'Service', namespaced: true } as unknown as Resource;
const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'front' } } as Parameters<typeof apply>[0][0];
const refusal = { kind: 'Status', reason: 'Forbidden', message: 'exceeded quota: services' };

/**
 * server rejects each create request because of a quota. exists specifies whether the object
 * exists.
 */
function server(exists: boolean): string[] {
  const requests: string[] = [];
  vi.stubGlobal('fetch', (address: string, { method }: RequestInit) => {
    requests.push(`${method} ${address.replace('/console/proxy/api/v1/namespaces/shop', '')}`);
    const [body, status] = method === 'POST' ? [refusal, 403] : exists ? [{ metadata: { name: 'front', resourceVersion: '7' } }, 200] : [{ kind: 'Status', reason: 'NotFound' }, 404];
    return Promise.resolve(new Response(JSON.stringify(body), { status }));
  });
  return requests;
}

const run = () => apply([service], 'shop', new Map([['services', services]]), false);

it('replaces an object that exists, although a quota allows no other object', async () => {
  const requests = server(true);
  expect((await run()).map(({ outcome }) => outcome)).toEqual(['changed']);
  expect(requests).toEqual(['POST /services', 'GET /services/front', 'PUT /services/front']);
});

it('reports why an object cannot be created', async () => {
  server(false);
  await expect(run()).rejects.toThrow(refusal.message);
});

it('creates an object of a project only in the project that it names', async () => {
  const requests = server(true);
  await expect(apply([service], undefined, new Map([['services', services]]), false)).rejects.toThrow(text.import.noProject);
  expect(requests).toEqual([]);
});
