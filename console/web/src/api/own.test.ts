import { expect, it } from 'vitest';
import { own } from './own';

it.each([
  ['SUCCESS', 'green'],
  ['other', undefined],
  ['__proto__', undefined],
  ['constructor', undefined],
])('the value for %s is %s', (key, want) => expect(own({ SUCCESS: 'green' }, key)).toBe(want));
