import { expect, it } from 'vitest';
import { shortImage } from './workloads';

it.each([
  [`r.example.com:5000/shop/app@sha256:${'1234567890abcdef'.repeat(4)}`, 'r.example.com:5000/shop/app@sha256:1234567890ab'],
  ['app:latest', 'app:latest'],
  [undefined, ''],
])('shortens the digest in %s', (image, short) => expect(shortImage(image)).toBe(short));
