import { afterEach, expect, test, vi } from 'vitest';
import { byProject, prune, readUsage, type ImageUsage } from './images';

afterEach(() => vi.unstubAllGlobals());

const image = (name: string, ...tags: string[]): ImageUsage => ({ name, size: 1, tags, users: [], prunable: false });

test('images count once for each project that has them', () => {
  const images = [image('a', 'shop/app:1', 'shop/app:2', 'books/app:1'), image('b', 'shop/app:1'), image('c')];
  expect(byProject(images).map(({ project, images: own }) => [project, own.map(({ name }) => name)])).toEqual([
    ['books', ['a']],
    ['shop', ['a', 'b']],
  ]);
});

test('the server gets the flags of the command', async () => {
  const request = vi.fn<typeof fetch>().mockResolvedValue(new Response('{}'));
  vi.stubGlobal('fetch', request);
  await readUsage({ revisions: 0, minutes: 90 });
  expect(request.mock.calls[0]?.[0]).toBe('/console/proxy/slipway/image-usage?keep-tag-revisions=0&keep-younger-than=90m');
});

/**
 * cluster returns an API with two images. A stream's history contains image a. No stream contains
 * image b, which changes before it is removed.
 */
function cluster(invalid: string[] = []) {
  const writes: string[] = [];
  const tags = ['shop/app:latest'];
  const stream = { metadata: { name: 'app', resourceVersion: '3' }, status: { tags: [{ tag: 'latest', items: [{ image: 'a' }] }, { tag: 'stable', items: [{ image: 'c' }] }] } };
  vi.stubGlobal('fetch', async (address: string, { method, body }: { method: string; body?: string }) => {
    const path = address.replace('/console/proxy', '');
    if (method !== 'GET') {
      writes.push(`${method} ${path} ${body}`);
    }
    if (method === 'PUT') {
      tags.length = 0;
    }
    if (method === 'DELETE' && path.endsWith('/b')) {
      return new Response('{"kind": "Status", "reason": "Conflict"}', { status: 409 });
    }
    const usage = { invalid, images: [{ ...image('a', ...tags), prunable: true }, { ...image('b'), prunable: true }, image('c', 'shop/app:stable')] };
    const items = ['a', 'b', 'c'].map((name) => ({ metadata: { name, uid: `u${name}`, resourceVersion: '1' } }));
    return new Response(JSON.stringify(path.startsWith('/slipway') ? usage : path.endsWith('/images') ? { items } : stream));
  });
  return writes;
}

test('pruning shortens histories, and removes the images that have not changed', async () => {
  const writes = cluster();
  expect(await prune({ revisions: 1, minutes: 0 })).toBe(1);
  const options = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: `u${name}`, resourceVersion: '1' } });
  expect(writes).toEqual([
    'PUT /apis/image.openshift.io/v1/namespaces/shop/imagestreams/app/status {"metadata":{"name":"app","resourceVersion":"3"},"status":{"tags":[{"tag":"stable","items":[{"image":"c"}]}]}}',
    `DELETE /apis/image.openshift.io/v1/images/a ${options('a')}`,
    `DELETE /apis/image.openshift.io/v1/images/b ${options('b')}`,
  ]);
});

test('pruning removes nothing while a reference cannot be parsed', async () => {
  const writes = cluster(['pod/odd']);
  await expect(prune({ revisions: 1, minutes: 0 })).rejects.toThrow('pod/odd');
  expect(writes).toEqual([]);
});
