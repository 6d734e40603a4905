import { expect, it } from 'vitest';
import type { LooseObject } from '../../../api/types';
import { attach } from '../../../text/attach';
import { isComplete } from '../../forms/model';
import { linkSecret } from './LinkSecret';

const account = { kind: 'ServiceAccount', metadata: { name: 'robot' }, secrets: [{ name: 'key' }] } as unknown as LooseObject;
const operations = (values: Record<string, string>) => linkSecret.operations(account, { ...linkSecret.values(account), ...values });
const isValid = (values: Record<string, string>) => linkSecret.sections(account).every((section) => isComplete(section, { ...linkSecret.values(account), ...values }));

it('links a secret for one use', () => {
  expect(operations({ secret: 'pull' })).toEqual([{ op: 'add', path: '/imagePullSecrets', value: [{ name: 'pull' }] }]);
  expect(operations({ secret: 'pull', use: 'secrets' })).toEqual([{ op: 'add', path: '/secrets/-', value: { name: 'pull' } }]);
});

it('does not link a secret twice for the same use', () => {
  expect([{ secret: 'key' }, { secret: 'key', use: 'secrets' }, {}].map((values) => isValid(values as Record<string, string>))).toEqual([true, false, false]);
  expect(linkSecret.sections(account)[0]?.inputs[0]?.problem?.('key', { use: 'secrets' })).toBe(attach.link.linked);
});
