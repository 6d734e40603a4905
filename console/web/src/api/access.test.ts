import { expect, test } from 'vitest';
import { holdersOf } from './access';

test('service accounts are not users', () => {
  expect(holdersOf({ users: ['system:serviceaccount:shop:builder', 'anna'], groups: ['system:masters'] })).toEqual({
    users: ['anna'],
    accounts: ['shop/builder'],
    groups: ['system:masters'],
    incomplete: '',
  });
  expect(holdersOf({ users: null, groups: null, evaluationError: 'no role x' })).toEqual({ users: [], accounts: [], groups: [], incomplete: 'no role x' });
});
