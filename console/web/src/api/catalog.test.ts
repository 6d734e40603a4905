import { describe, expect, it } from 'vitest';
import { buildersOf, initialParameters, itemsOf, serviceIcon, supports, type ImageStream } from './catalog';

/**
 * stream returns an image stream. Its builder tags are the given tags, in the given order. It has
 * two other tags that the catalog does not offer.
 */
const stream = (...names: string[]): ImageStream => ({
  apiVersion: 'image.openshift.io/v1',
  kind: 'ImageStream',
  metadata: { name: 'python', namespace: 'openshift', uid: '', resourceVersion: '1', creationTimestamp: '' },
  spec: {
    tags: [
      { name: '9-application', annotations: { tags: 'python' } },
      { name: '9-old', annotations: { tags: 'builder, hidden' } },
      ...names.map((name) => ({ name, annotations: { tags: 'builder,python', description: `about ${name}` } })),
    ],
  },
});

describe('buildersOf', () => {
  it.each([
    [['3.11', 'latest'], ['latest', '3.11']],
    [['2.7', '3.11', '3.6'], ['3.11', '3.6', '2.7']],
    [[], []],
  ])('a stream with %j is %j', (names, want) => expect(buildersOf(stream(...names)).map((tag) => tag.name)).toEqual(want));
});

describe('itemsOf', () => {
  it('describes the builder that the form offers first', () => {
    expect(itemsOf([], [stream('3.11', 'latest')]).map((item) => item.description)).toEqual(['about latest']);
  });
  it('omits streams without builders', () => expect(itemsOf([], [stream()])).toEqual([]));
});

describe('serviceIcon', () => {
  it.each([
    [undefined, { name: '', image: undefined }],
    [{ 'console.openshift.io/iconClass': 'icon-redis' }, { name: 'icon-redis', image: undefined }],
    [{ imageUrl: 'data:image/png;base64,AA==' }, { name: '', image: 'data:image/png;base64,AA==' }],
    [{ imageUrl: 1, 'console.openshift.io/iconClass': {} } as never, { name: '', image: undefined }],
    [{ imageUrl: 'https://other.example.com/spy.png' }, { name: '', image: undefined }],
  ])('the icon of a service with %j is %j', (metadata, want) => expect(serviceIcon(metadata)).toEqual(want));
});

describe('supports', () => {
  it.each([
    ['python:3.11,python', 'python', true],
    ['python:3.11, jee', 'jee', true],
    ['python3', 'python', false],
    [undefined, 'python', false],
  ])('a builder whose annotation is %j builds %s: %s', (supported, language, want) => {
    const builder = stream('latest');
    builder.spec?.tags?.forEach((tag) => tag.name === 'latest' && Object.assign(tag.annotations ?? {}, { supports: supported }));
    expect(supports(builder, language)).toBe(want);
  });
});

describe('initialParameters', () => {
  const parameters = [{ name: 'A', value: 'a' }, { name: 'B' }, { name: 'constructor' }];
  it.each([
    [null, ['a', '', '']],
    ['{"A":"x","B":"y","C":"z"}', ['x', 'y', '']],
    ['{"A":1,"B":{}}', ['a', '', '']],
    ['no JSON', ['a', '', '']],
    ['null', ['a', '', '']],
  ])('uses the values in %s', (preset, [A, B, constructor]) => expect(initialParameters(parameters, preset)).toEqual({ A, B, constructor }));
});
