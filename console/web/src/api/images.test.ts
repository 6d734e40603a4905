import { expect, test } from 'vitest';
import { prunable, referencesOf, usersOf, type Image, type Store } from './images';
import type { LooseObject } from './types';

const hour = 3_600_000;
const now = Date.parse('2030-01-02T00:00:00Z');
const old = '2030-01-01T00:00:00Z';
const young = '2030-01-01T23:30:00Z';
const name = (letter: string) => `sha256:${letter.repeat(64)}`;

const meta = (name: string, created = old, namespace?: string) => ({ name, namespace, uid: name, resourceVersion: '1', creationTimestamp: created });
const image = (letter: string, created = old, children: string[] = []): Image => ({
  apiVersion: 'v1',
  kind: 'Image',
  metadata: meta(name(letter), created),
  dockerImageManifests: children.map((child) => ({ digest: name(child) })),
});
const stream = (tags: Record<string, string[]>) => ({
  apiVersion: 'v1',
  kind: 'ImageStream',
  metadata: meta('app', old, 'shop'),
  status: { tags: Object.entries(tags).map(([tag, letters]) => ({ tag, items: letters.map((letter) => ({ image: name(letter), created: old })) })) },
});
const pod = (spec: object, phase = 'Running') => ({ apiVersion: 'v1', kind: 'Pod', metadata: meta('p', old, 'shop'), spec, status: { phase } }) as unknown as LooseObject;

function pruned(store: Partial<Store>, objects: LooseObject[], revisions: number): string[] {
  const references = referencesOf(objects, now - hour);
  return prunable({ images: [], streams: [], ...store, references }, { revisions, younger: hour }, now).map(({ metadata }) => metadata.name.charAt(7));
}

test('images in the newest revisions, young images and used images stay', () => {
  const store = { images: [image('a'), image('b'), image('c'), image('d'), image('e', young)], streams: [stream({ latest: ['a', 'b', 'c'] })] };
  expect(pruned(store, [], 1)).toEqual(['b', 'c', 'd']);
  expect(pruned(store, [pod({ containers: [{ image: `registry:5000/shop/app@${name('c')}` }] })], 1)).toEqual(['b', 'd']);
});

test('a pod that ended long ago uses nothing', () => {
  const store = { images: [image('a')] };
  const spec = { containers: [{ image: `x/y@${name('a')}` }] };
  expect(pruned(store, [pod(spec)], 0)).toEqual([]);
  expect(pruned(store, [pod(spec, 'Succeeded')], 0)).toEqual(['a']);
});

test('the newest image of a used tag stays', () => {
  const store = { images: [image('a'), image('b')], streams: [stream({ latest: ['a', 'b'] })] };
  expect(pruned(store, [], 0)).toEqual(['a', 'b']);
  for (const spec of [{ from: { kind: 'ImageStreamTag', name: 'app:latest' } }, { containers: [{ image: 'registry.example.com/shop/app' }] }, { containers: [{ image: 'app' }] }]) {
    expect(pruned(store, [pod(spec)], 0)).toEqual(['b']);
  }
});

test('an index keeps its images', () => {
  const store = { images: [image('a', old, ['b']), image('b'), image('c')], streams: [stream({ latest: ['a'] })] };
  expect(pruned(store, [], 3)).toEqual(['c']);
});

test('users of an image are named', () => {
  const references = referencesOf([pod({ containers: [{ image: 'app:latest' }] })], 0);
  expect(usersOf(image('a'), { images: [], streams: [stream({ latest: ['a'] })], references })).toEqual(['Pod shop/p']);
});
