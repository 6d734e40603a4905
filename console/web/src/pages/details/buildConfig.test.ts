import { expect, it } from 'vitest';
import type { LooseObject } from '../../api/types';
import { changeOf, settingsOf, valuesOf, webhooksOf } from './buildConfig';

const generic = { type: 'Generic', generic: { secretReference: { name: 'hook' } } };
const config = {
  kind: 'BuildConfig',
  metadata: { name: 'site', namespace: 'a', resourceVersion: '7' },
  spec: {
    source: { git: { uri: 'https://a/b' } },
    strategy: { sourceStrategy: { from: { kind: 'ImageStreamTag', name: 'python:3' } } },
    triggers: [{ type: 'ConfigChange' }, generic, { type: 'GitHub', github: { secret: 's' } }],
  },
} as unknown as LooseObject;

it('finds webhooks with their secrets', () => {
  expect(webhooksOf(config)).toEqual([
    { type: 'Generic', secret: 'hook', reference: 'hook' },
    { type: 'GitHub', secret: 's', reference: undefined },
  ]);
});

it('changes only edited fields', () => {
  expect(settingsOf(config).map(({ path }) => path)).not.toContain('spec.strategy.dockerStrategy.noCache');
  const values = { ...valuesOf(config), 'spec.source.git.ref': 'main', 'spec.strategy.sourceStrategy.incremental': 'true', ConfigChange: 'false', ImageChange: 'true' };
  expect(changeOf(config, values)).toEqual({
    metadata: { resourceVersion: '7' },
    spec: {
      source: { git: { ref: 'main' } },
      strategy: { sourceStrategy: { incremental: true } },
      triggers: [generic, { type: 'GitHub', github: { secret: 's' } }, { type: 'ImageChange', imageChange: {} }],
    },
  });
  const withSecret = { ...config, spec: { source: { git: {}, sourceSecret: { name: 'git' } } } } as unknown as LooseObject;
  expect(changeOf(withSecret, { ...valuesOf(withSecret), 'spec.source.sourceSecret.name': '' })).toMatchObject({ spec: { source: { sourceSecret: null } } });
  expect(changeOf(config, valuesOf(config))).toEqual({ metadata: { resourceVersion: '7' } });
});
