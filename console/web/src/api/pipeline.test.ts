import { expect, test } from 'vitest';
import { formatDuration, inputsOf, jenkinsOf, stagesOf, testsOf } from './pipeline';
import type { LooseObject } from './types';

const build = (annotations: Record<string, string>) => ({ apiVersion: 'v1', kind: 'Build', metadata: { name: 'b', uid: 'b', resourceVersion: '1', creationTimestamp: '', annotations } }) as LooseObject;

test('stages have the times that Jenkins writes', () => {
  const status = { stages: [{ name: 'Build', status: 'SUCCESS', startTimeMillis: 5, durationMillis: 61_000, pauseDurationMillis: 0 }, { name: 'Deploy' }] };
  expect(stagesOf(build({ 'openshift.io/jenkins-status-json': JSON.stringify(status) }))).toEqual([
    { name: 'Build', status: 'SUCCESS', start: 5, duration: 61_000, paused: 0 },
    { name: 'Deploy', status: '', start: 0, duration: 0, paused: 0 },
  ]);
});

test('an invalid annotation has no stages and inputs', () => {
  for (const content of ['{', 'null', '7', '[null]', '{"stages": {}}']) {
    expect(stagesOf(build({ 'openshift.io/jenkins-status-json': content }))).toEqual([]);
    expect(inputsOf(build({ 'openshift.io/jenkins-pending-input-actions-json': content }))).toEqual([]);
  }
});

test('results of tests have texts and numbers only', () => {
  const results = { total: 3, failed: 1, skipped: '1', durationMillis: 1500, failures: [{ suite: 'a.B', name: '<b>', message: { text: 'x' } }, null] };
  expect(testsOf(build({ 'pipeline.slipway.io/test-results-json': JSON.stringify(results) }))).toEqual({
    total: 3, failed: 1, skipped: 0, duration: 1500,
    failures: [{ suite: 'a.B', name: '<b>', message: '' }, { suite: '', name: '', message: '' }],
  });
  for (const content of [undefined, '{', 'null', '[]', '{"total": "3"}']) {
    expect(testsOf(build(content === undefined ? {} : { 'pipeline.slipway.io/test-results-json': content }))).toBeUndefined();
  }
});

test('a decided input does not wait', () => {
  const inputs = JSON.stringify([{ id: 'deploy', message: 'Deploy?', proceedText: 'Go' }, { id: 'other', message: '' }, { id: 'x/y' }]);
  const pending = inputsOf(build({ 'openshift.io/jenkins-pending-input-actions-json': inputs, 'pipeline.slipway.io/input-other': 'proceed' }));
  expect(pending).toEqual([{ id: 'deploy', message: 'Deploy?', proceedText: 'Go' }]);
});

test('only a web address is a link to Jenkins', () => {
  expect(jenkinsOf(build({ 'openshift.io/jenkins-build-uri': 'javascript:alert(1)' }))).toBeUndefined();
  expect(jenkinsOf(build({ 'openshift.io/jenkins-build-uri': 'https://jenkins.example.com/job/1/' }))).toBe('https://jenkins.example.com/job/1/');
});

test('durations are short', () => {
  expect([250, 42_000, 72_000, 3_700_000].map(formatDuration)).toEqual(['250ms', '42s', '1m 12s', '1h 1m']);
});
