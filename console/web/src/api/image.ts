import { text } from '../text/en';
import type { KubeObject } from './types';

export interface Layer {
  name: string;
  size: number;
  mediaType?: string;
}

interface ImageConfig {
  Entrypoint?: string[] | null;
  Cmd?: string[] | null;
  User?: string;
  WorkingDir?: string;
  Env?: string[] | null;
  ExposedPorts?: Record<string, unknown> | null;
}

/** ImageOfStream is an image as returned by the image stream resources. */
export interface ImageOfStream extends KubeObject {
  image?: {
    dockerImageReference?: string;
    dockerImageLayers?: Layer[] | null;
    dockerImageMetadata?: { Architecture?: string; Created?: string; Config?: ImageConfig | null; ContainerConfig?: ImageConfig | null };
  };
}

/** layersOf returns an image's layers, base layer first. */
export function layersOf(of: ImageOfStream): Layer[] {
  return of.image?.dockerImageLayers ?? [];
}

/**
 * configOf returns the settings with which an image's containers start. It omits settings without a
 * value.
 */
export function configOf(of: ImageOfStream): [term: string, value: string][] {
  const metadata = of.image?.dockerImageMetadata;
  const config = metadata?.Config ?? metadata?.ContainerConfig ?? {};
  const facts: [string, string][] = [
    [text.image.reference, of.image?.dockerImageReference ?? ''],
    [text.image.architecture, metadata?.Architecture ?? ''],
    [text.image.entrypoint, (config.Entrypoint ?? []).join(' ')],
    [text.image.command, (config.Cmd ?? []).join(' ')],
    [text.image.user, config.User ?? ''],
    [text.image.directory, config.WorkingDir ?? ''],
    [text.pod.ports, Object.keys(config.ExposedPorts ?? {}).join(', ')],
    [text.details.tabs.environment, (config.Env ?? []).join(', ')],
  ];
  return facts.filter(([, value]) => value !== '');
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** bytes formats a size with a suitable unit, such as 12.3 MiB. */
export function bytes(size: number): string {
  let unit = 0;
  let value = size;
  for (; value >= 1024 && unit < units.length - 1; unit++) {
    value /= 1024;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
