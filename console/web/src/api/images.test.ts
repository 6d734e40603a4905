import { expect, test, vi } from 'vitest';
import { byProject, readUsage, type ImageUsage } from './images';

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
