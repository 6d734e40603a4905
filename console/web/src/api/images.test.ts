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
 * cluster simulates an API. Image a is in the history of a stream, and image b is in no stream. The
 * images in changed are modified after they are listed. If isBusy is set, another tag of the stream
 * gets image a after the usage is first read.
 */
function cluster({ invalid = [], changed = [], isBusy = false }: { invalid?: string[]; changed?: string[]; isBusy?: boolean } = {}) {
  const writes: string[] = [];
  const stream = { metadata: { name: 'app', namespace: 'shop', resourceVersion: '3' }, status: { tags: [{ tag: 'latest', items: [{ image: 'a' }] }, { tag: 'stable', items: [{ image: 'c' }] }] } };
  let usages = 0;
  vi.stubGlobal('fetch', async (address: string, { method, body }: { method: string; body?: string }) => {
    const path = address.replace('/console/proxy', '');
    if (method !== 'GET') {
      writes.push(`${method} ${path} ${body}`);
    }
    if (method === 'PUT') {
      stream.status = (JSON.parse(body ?? '') as typeof stream).status;
    }
    if (method === 'DELETE' && changed.some((name) => path.endsWith(`/${name}`))) {
      return new Response('{"kind": "Status", "reason": "Conflict"}', { status: 409 });
    }
    if (path.startsWith('/slipway')) {
      const tagsOf = (name: string) => stream.status.tags.filter(({ items }) => items.some((item) => item.image === name)).map(({ tag }) => `shop/app:${tag}`);
      const images = ['a', 'b', 'c', 'd'].map((name) => ({ ...image(name, ...tagsOf(name)), prunable: name !== 'c' && !tagsOf(name).includes('shop/app:new') }));
      if (isBusy && usages++ === 0) {
        stream.status.tags.push({ tag: 'new', items: [{ image: 'a' }] });
        stream.metadata.resourceVersion = '4';
      }
      return new Response(JSON.stringify({ invalid, images }));
    }
    const items = ['a', 'b', 'c', 'd'].map((name) => ({ metadata: { name, uid: `u${name}`, resourceVersion: '1' } }));
    return new Response(JSON.stringify(path.endsWith('/images') ? { items } : path.endsWith('/imagestreams') ? { items: [stream] } : stream));
  });
  return writes;
}

const retention = { revisions: 1, minutes: 0 };
const deleted = (name: string) =>
  `DELETE /apis/image.openshift.io/v1/images/${name} ${JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: `u${name}`, resourceVersion: '1' } })}`;

test('pruning shortens histories, and removes the images of the preview that have not changed', async () => {
  const writes = cluster({ changed: ['b'] });
  expect(await prune(retention, ['a', 'b', 'c'])).toBe(1);
  expect(writes).toEqual([
    'PUT /apis/image.openshift.io/v1/namespaces/shop/imagestreams/app/status {"metadata":{"name":"app","namespace":"shop","resourceVersion":"3"},"status":{"tags":[{"tag":"stable","items":[{"image":"c"}]}]}}',
    deleted('a'),
    deleted('b'),
  ]);
});

test('pruning keeps an image that gets a new tag', async () => {
  const writes = cluster({ isBusy: true });
  expect(await prune(retention, ['a', 'b'])).toBe(1);
  expect(writes).toEqual([deleted('b')]);
});

test('pruning removes nothing while a reference cannot be parsed', async () => {
  const writes = cluster({ invalid: ['pod/odd'] });
  await expect(prune(retention, ['a'])).rejects.toThrow('pod/odd');
  expect(writes).toEqual([]);
});
