import { warnings as t } from '../../text/warnings';
import type { KubeObject } from '../types';
import { ids, listOf, type Reference, type State, type Warning } from './state';

interface ImageStream extends KubeObject {
  status?: { tags?: { tag: string; items?: unknown[] | null }[] };
}

interface DeploymentConfig extends KubeObject {
  spec: { triggers?: { imageChangeParams?: { from: Reference; lastTriggeredImage?: string } }[] };
}

interface BuildConfig extends KubeObject {
  spec: {
    strategy?: Record<string, { from?: Reference } | string>;
    source?: { images?: { from: Reference }[] };
    output?: { to?: Reference };
  };
}

interface Build extends KubeObject {
  status?: { phase?: string };
}

/**
 * tagName returns the full name of a tag. If name contains only a stream's name, it appends the tag
 * latest.
 */
const tagName = (name = '') => (/[:@]/.test(name) ? name : `${name}:latest`);

/** streamOf returns a tag's image stream, if it exists. */
function streamOf(streams: ImageStream[], tag: Reference): ImageStream | undefined {
  return streams.find(({ metadata }) => metadata.name === tag.name?.split(':')[0]);
}

function hasImage(stream: ImageStream, name: string | undefined): boolean {
  const tag = tagName(name).split(':')[1];
  return (stream.status?.tags ?? []).some((list) => list.tag === tag && (list.items?.length ?? 0) > 0);
}

/** buildersOf returns the build configurations that push to a tag. */
function buildersOf(configs: BuildConfig[], tag: Reference, project: string): BuildConfig[] {
  return configs.filter(({ spec: { output } }) => {
    const to = output?.to;
    return to !== undefined && to.kind === tag.kind && tagName(to.name) === tagName(tag.name) && (to.namespace ?? project) === (tag.namespace ?? project);
  });
}

/**
 * triggerWarnings finds image triggers of deployment configurations whose image is created neither
 * by a build nor by an import.
 */
export function triggerWarnings(state: State): Warning[] {
  const streams = state.of(ids.streams) as unknown as ImageStream[] | undefined;
  const builders = listOf<BuildConfig>(state, ids.buildConfigs);
  if (!streams) {
    return [];
  }
  return listOf<DeploymentConfig>(state, ids.configs).flatMap(({ metadata: { name }, spec }) =>
    (spec.triggers ?? []).flatMap(({ imageChangeParams: params }): Warning[] => {
      if (!params || params.lastTriggeredImage || (params.from.namespace ?? state.project) !== state.project) {
        return [];
      }
      const stream = streamOf(streams, params.from);
      if (!stream) {
        return [{ level: 'error', resource: ids.configs, name, ...t.noTriggerStream(tagName(params.from.name)) }];
      }
      const isCreated = hasImage(stream, params.from.name) || buildersOf(builders, params.from, state.project).length > 0;
      return isCreated ? [] : [{ level: 'warning', resource: ids.configs, name, ...t.noTriggerImage(tagName(params.from.name)) }];
    }),
  );
}

/**
 * buildWarnings finds build configurations whose output stream does not exist, or whose latest
 * build has failed.
 */
export function buildWarnings(state: State): Warning[] {
  const streams = state.of(ids.streams) as unknown as ImageStream[] | undefined;
  const builds = listOf<Build>(state, ids.builds);
  return listOf<BuildConfig>(state, ids.buildConfigs).flatMap(({ metadata: { name }, spec: { output } }): Warning[] => {
    const to = output?.to;
    const isInProject = to?.kind === 'ImageStreamTag' && (to.namespace ?? state.project) === state.project;
    const latest = builds
      .filter(({ metadata }) => metadata.labels?.['openshift.io/build-config.name'] === name)
      .reduce<Build | undefined>((newest, build) => (newest && newest.metadata.creationTimestamp > build.metadata.creationTimestamp ? newest : build), undefined);
    const hasFailed = ['Failed', 'Error'].includes(latest?.status?.phase ?? '');
    return [
      ...(isInProject && streams && !streamOf(streams, to) ? [{ level: 'error' as const, resource: ids.buildConfigs, name, ...t.noOutputStream(tagName(to.name)) }] : []),
      ...(latest && hasFailed ? [{ level: 'error' as const, resource: ids.builds, name: latest.metadata.name, tab: 'logs', ...t.failedBuild(latest.metadata.name) }] : []),
    ];
  });
}

/** inputsOf returns a build configuration's input images. */
function inputsOf({ spec: { strategy = {}, source } }: BuildConfig): Reference[] {
  const bases = Object.values(strategy).flatMap((details) => (typeof details === 'object' && details.from ? [details.from] : []));
  return [...bases, ...(source?.images ?? []).map(({ from }) => from)];
}

/**
 * cycleWarnings finds cycles of build configurations. The builds in a cycle would trigger each
 * other forever.
 */
export function cycleWarnings(state: State): Warning[] {
  const configs = listOf<BuildConfig>(state, ids.buildConfigs);
  const done = new Set<string>();
  const explore = (config: BuildConfig, path: string[]): string[][] => {
    const { name } = config.metadata;
    if (path.includes(name)) {
      return [[name, ...path.slice(path.indexOf(name)).reverse()]]; // in the order of the builds
    }
    if (done.has(name)) {
      return [];
    }
    const builders = inputsOf(config).flatMap((from) => buildersOf(configs, from, state.project));
    const cycles = builders.flatMap((builder) => explore(builder, [...path, name]));
    done.add(name);
    return cycles;
  };
  return configs.flatMap((config) => explore(config, [])).map((cycle): Warning => ({ level: 'warning', resource: ids.buildConfigs, name: cycle[0] ?? '', ...t.cycle(cycle.join(' → ')) }));
}
