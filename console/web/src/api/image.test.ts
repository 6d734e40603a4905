import { expect, it } from 'vitest';
import { bytes, configOf, layersOf, type ImageOfStream } from './image';

it('shows how an image starts, without unset fields', () => {
  const image = { image: { dockerImageReference: 'r/a@sha256:1', dockerImageMetadata: { Architecture: 'amd64', Config: { Cmd: ['run', 'it'], User: '', Env: null } } } } as ImageOfStream;
  expect(configOf(image).map(([, value]) => value)).toEqual(['r/a@sha256:1', 'amd64', 'run it']);
  expect(layersOf(image)).toEqual([]);
});

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [5 * 2 ** 30, '5.0 GiB'],
])('writes %d bytes as %s', (size, written) => expect(bytes(size)).toBe(written));
