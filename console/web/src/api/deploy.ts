import type { ImageStream } from './catalog';
import { ApiError, get, post } from './http';
import { quote, runningObjects, streamOf, type Port } from './source';
import type { KubeObject } from './types';

/** Found describes an image, as reported by its registry. */
export interface Found {
  ports: Port[];
  env: [name: string, value: string][];
  user: string;
}

/** StreamTag identifies an image stream tag. name has the form STREAM:TAG. */
export interface StreamTag {
  namespace: string;
  name: string;
}

/** Deployed is the user's input for an application from an image. */
export interface Deployed {
  name: string;
  image: string;
  /** tag is the image's tag, if the image is in an image stream. */
  tag?: StreamTag;
  /** found describes the image. If it is undefined, the nodes pull the image by its name. */
  found?: Found;
  env: [name: string, value: string][];
  route: boolean;
}

interface Image {
  dockerImageMetadata?: { Config?: Config | null; ContainerConfig?: Config | null };
}

interface ImportedImage {
  status: { status?: string; message?: string };
  image?: Image;
}

interface Config {
  ExposedPorts?: Record<string, unknown> | null;
  Env?: string[] | null;
  User?: string;
}

/** validImage reports whether a string has the form of an image reference. */
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
  return describe(result?.image, result?.status.message ?? reference);
}

/** findTag requests the description of a tag's image. */
export async function findTag({ namespace, name }: StreamTag): Promise<Found> {
  const path = `/apis/image.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/imagestreamtags/${encodeURIComponent(name)}`;
  return describe((await get<{ image?: Image }>(path)).image, name);
}

/** describe returns the description of an image. It throws an error if there is none. */
function describe(image: Image | undefined, message: string): Found {
  const metadata = image?.dockerImageMetadata;
  if (!metadata) {
    throw new ApiError(404, 'NotFound', message);
  }
  return configOf(metadata.Config ?? metadata.ContainerConfig ?? {});
}

/** tagsOf returns the names of the tags in image streams that have an image. */
export function tagsOf(streams: ImageStream[]): string[] {
  return streams.flatMap(({ metadata, status }) => (status?.tags ?? []).filter(({ items }) => items?.length).map(({ tag }) => `${metadata.name}:${tag}`)).sort();
}

/** tagOf returns a reference's tag, or latest if the reference contains no tag. */
function tagOf(reference: string): string {
  const [path = ''] = reference.split('@');
  return /:([\w][\w.-]*)$/.exec(path.split('/').pop() ?? '')?.[1] ?? 'latest';
}

/** imageObjects returns the objects for an application from an image. */
export function imageObjects({ name, image, tag: streamTag, found, env, route }: Deployed): KubeObject[] {
  const running = { name, ports: found?.ports ?? [], route, env: env.map(([key, value]) => ({ name: key, value })) };
  if (streamTag) {
    return runningObjects({ ...running, image: streamTag.name, tag: streamTag }) as KubeObject[];
  }
  if (!found) {
    return runningObjects({ ...running, image }) as KubeObject[];
  }
  const tag = tagOf(image);
  const stream = streamOf(name, [{ name: tag, from: { kind: 'DockerImage', name: image }, importPolicy: {} }]);
  return [stream, ...runningObjects({ ...running, image: `${name}:${tag}`, tag: { name: `${name}:${tag}` } })] as KubeObject[];
}

/** commandOf returns the oc command that creates the same application. */
export function commandOf({ name, image, tag, env }: Deployed, project: string): string {
  const source = tag ? `--image-stream=${tag.namespace}/${tag.name}` : `--docker-image=${image}`;
  return ['oc', 'new-app', '-n', project, source, `--name=${name}`, ...env.map(([key, value]) => `--env=${key}=${value}`)].map(quote).join(' ');
}
