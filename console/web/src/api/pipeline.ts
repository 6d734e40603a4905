import { merge } from './http';
import type { LooseObject } from './types';

/** Stage is a pipeline's stage, in Jenkins' format. Times are in milliseconds. */
export interface Stage {
  name: string;
  status: string;
  start: number;
  duration: number;
  paused: number;
}

/** PendingInput is a decision that a pipeline waits for. */
export interface PendingInput {
  id: string;
  message: string;
  proceedText: string;
}

/** Tests contains the results of a pipeline's tests. The list of failures can be incomplete. */
export interface Tests {
  total: number;
  failed: number;
  skipped: number;
  duration: number;
  failures: { suite: string; name: string; message: string }[];
}

const testsKey = 'pipeline.slipway.io/test-results-json';
const statusKey = 'openshift.io/jenkins-status-json';
const inputsKey = 'openshift.io/jenkins-pending-input-actions-json';
const answerPrefix = 'pipeline.slipway.io/input-';
const jenkinsKey = 'openshift.io/jenkins-build-uri';

/** isPipeline reports whether a build or a build configuration is a pipeline. */
export function isPipeline(object: LooseObject): boolean {
  return (object.spec as { strategy?: { type?: string } } | undefined)?.strategy?.type === 'JenkinsPipeline';
}

function parse(content: string | undefined): unknown {
  try {
    return JSON.parse(content ?? '');
  } catch {
    return undefined;
  }
}

const record = (value: unknown) => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {});
const number = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
const word = (value: unknown) => (typeof value === 'string' ? value : '');
const listOf = (value: unknown) => (Array.isArray(value) ? (value as unknown[]).map(record) : []);

/**
 * stagesOf returns a build's stages. Their content is not trusted, because any user who can update
 * the build can write them.
 */
export function stagesOf(build: LooseObject): Stage[] {
  return listOf(record(parse(build.metadata.annotations?.[statusKey])).stages).map((stage) => ({
    name: word(stage.name),
    status: word(stage.status),
    start: number(stage.startTimeMillis),
    duration: number(stage.durationMillis),
    paused: number(stage.pauseDurationMillis),
  }));
}

/**
 * testsOf returns the results of a build's tests, if there are any. The results are not trusted,
 * because any user who can update the build can write them.
 */
export function testsOf(build: LooseObject): Tests | undefined {
  const tests = record(parse(build.metadata.annotations?.[testsKey]));
  if (typeof tests.total !== 'number') {
    return undefined;
  }
  return {
    total: number(tests.total),
    failed: number(tests.failed),
    skipped: number(tests.skipped),
    duration: number(tests.durationMillis),
    failures: listOf(tests.failures).map((failure) => ({ suite: word(failure.suite), name: word(failure.name), message: word(failure.message) })),
  };
}

/**
 * inputsOf returns the decisions that a build waits for. It omits inputs that users have already
 * answered.
 */
export function inputsOf(build: LooseObject): PendingInput[] {
  const annotations = build.metadata.annotations ?? {};
  return listOf(parse(annotations[inputsKey]))
    .map((input) => ({ id: word(input.id), message: word(input.message), proceedText: word(input.proceedText) }))
    .filter(({ id }) => /^[a-z0-9][a-z0-9-]*$/.test(id) && annotations[answerPrefix + id] === undefined);
}

/** answer sends the user's decision for an input of a build. */
export function answer(path: string, input: PendingInput, decision: 'proceed' | 'abort'): Promise<unknown> {
  return merge(path, { metadata: { annotations: { [answerPrefix + input.id]: decision } } });
}

/**
 * jenkinsOf returns the address of a build's page in Jenkins if Jenkins runs the build. Users make
 * the build's decisions on this page.
 */
export function jenkinsOf(build: LooseObject): string | undefined {
  const address = build.metadata.annotations?.[jenkinsKey] ?? '';
  return /^https?:\/\//.test(address) ? address : undefined;
}

/** formatDuration formats a duration, such as 1m 12s. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) {
    return milliseconds < 1000 ? `${Math.round(milliseconds)}ms` : `${seconds}s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}
