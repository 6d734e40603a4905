import { ApiError, post } from './http';
import { quote, runningObjects, streamOf, type Port } from './source';
import type { KubeObject } from './types';

/** Found describes an image according to its registry. */
export interface Found {
  ports: Port[];
  env: [name: string, value: string][];
  user: string;
}

/** Deployed is the user's input for an application from an image. */
export interface Deployed {
  name: string;
  image: string;
  /** found describes the image. If it is undefined, the nodes pull the image by its name. */
  found?: Found;
  env: [name: string, value: string][];
  route: boolean;
}

interface ImportedImage {
  status: { status?: string; message?: string };
  image?: { dockerImageMetadata?: { Config?: Config | null; ContainerConfig?: Config | null } };
}

interface Config {
  ExposedPorts?: Record<string, unknown> | null;
  Env?: string[] | null;
  User?: string;
}

/** validImage reports whether a text has the form of an image reference. */
export function validImage(reference: string): boolean {
  return /^[\w.-]+(:\d+)?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/i.test(reference) && !/^https?:/.test(reference);
}

/**
 * nameOf returns a name for an image's application: the last part of the image's name, without the
 * tag.
 */
export function nameOf(reference: string): string {
  const [path = ''] = reference.split('@');
  const last = path.split('/').pop() ?? '';
  return (last.split(':')[0] ?? '').toLowerCase().replace(/[^a-z0-9-]+/g, '-').replace(/^-+|-+$/g, '');
}

/** configOf parses an image's configuration. */
export function configOf(config: Config): Found {
  const ports = Object.keys(config.ExposedPorts ?? {}).map((text): Port => {
    const [port, protocol = 'tcp'] = text.split('/');
    return { port: Number(port), protocol: protocol.toUpperCase() };
  });
  const env = (config.Env ?? []).map((line): [string, string] => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)];
  });
  return { ports: ports.sort((a, b) => a.port - b.port), env, user: config.User ?? '' };
}

/** findImage requests the description of an image from the server, which stores nothing. */
export async function findImage(project: string, reference: string): Promise<Found> {
  const images = [{ from: { kind: 'DockerImage', name: reference } }];
  const request = { apiVersion: 'image.openshift.io/v1', kind: 'ImageStreamImport', metadata: { name: nameOf(reference) || 'image' }, spec: { import: false, images } };
  const path = `/apis/image.openshift.io/v1/namespaces/${encodeURIComponent(project)}/imagestreamimports`;
  const { status } = await post<{ status: { images?: ImportedImage[] } }>(path, request, { repeatable: true });
  const [result] = status.images ?? [];
  const metadata = result?.image?.dockerImageMetadata;
  if (!metadata) {
    throw new ApiError(404, 'NotFound', result?.status.message ?? reference);
  }
  return configOf(metadata.Config ?? metadata.ContainerConfig ?? {});
}

/** tagOf returns a reference's tag. */
function tagOf(reference: string): string {
  const [path = ''] = reference.split('@');
  return /:([\w][\w.-]*)$/.exec(path.split('/').pop() ?? '')?.[1] ?? 'latest';
}

/** imageObjects returns the objects for an application from an image. */
export function imageObjects({ name, image, found, env, route }: Deployed): KubeObject[] {
  const running = { name, ports: found?.ports ?? [], route, env: env.map(([key, value]) => ({ name: key, value })) };
  if (!found) {
    return runningObjects({ ...running, image }) as KubeObject[];
  }
  const tag = tagOf(image);
  const stream = streamOf(name, [{ name: tag, from: { kind: 'DockerImage', name: image }, importPolicy: {} }]);
  return [stream, ...runningObjects({ ...running, image: `${name}:${tag}`, tag: { name: `${name}:${tag}` } })] as KubeObject[];
}

/** commandOf returns the oc command that has the same effect. */
export function commandOf({ name, image, env }: Deployed, project: string): string {
  return ['oc', 'new-app', '-n', project, `--docker-image=${image}`, `--name=${name}`, ...env.map(([key, value]) => `--env=${key}=${value}`)].map(quote).join(' ');
}
