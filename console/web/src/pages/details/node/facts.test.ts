import { expect, test } from 'vitest';
import { httpsAddress } from './facts';

test('only an https address is a link', () => {
  expect(httpsAddress('https://node1.example.com:9090/')).toBe('https://node1.example.com:9090/');
  for (const other of ['javascript:alert(1)', 'http://node1.example.com:9090/', 'https://', 'node1', 'https://user:secret@node1/', undefined]) {
    expect(httpsAddress(other)).toBeUndefined();
  }
});
