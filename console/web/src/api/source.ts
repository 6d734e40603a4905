import { get } from './http';
import type { KubeObject, Row } from './types';

/** Origin is the location of source in a Git repository. */
export interface Origin {
  uri: string;
  ref: string;
  contextDir: string;
  /** secret is the name of the secret for a private repository, or empty. */
  secret: string;
}

/** Source is the user's input for an application that is built from source. */
export interface Source extends Origin {
  name: string;
  namespace: string;
  stream: string;
  tag: string;
  port: number;
  route: boolean;
}

const generatedKey = 'openshift.io/generated-by';

/** validURI reports whether git accepts an address. */
export function validURI(uri: string): boolean {
  return /^(https?|ssh|git):\/\/[^\s/]+\/\S+$/.test(uri) || /^[\w.-]+@[\w.-]+:\S+$/.test(uri);
}

/** Dockerfile is the user's input for an application that is built from a Dockerfile. */
export interface Dockerfile extends Origin {
  name: string;
  /** text is the Dockerfile's content. If it is empty, the Dockerfile is in the repository. */
  text: string;
  /** path is the Dockerfile's path in the context directory, if its name is not Dockerfile. */
  path: string;
  port: number;
  route: boolean;
}

/** Running describes how an application runs. */
export interface Running {
  name: string;
  /** image is the container's image. */
  image: string;
  /** tag is the image stream tag of the image. A change to the tag starts a rollout. */
  tag?: { name: string; namespace?: string };
  ports: Port[];
  route: boolean;
  env?: { name: string; value: string }[];
}

/** Port is a container's port. */
export interface Port {
  port: number;
  protocol: string;
}

const metadataOf = (name: string) => ({ name, labels: { app: name }, annotations: { [generatedKey]: 'OpenShiftWebConsole' } });

/** streamOf returns an image stream. tags is set if the image is imported instead of built. */
export function streamOf(name: string, tags?: unknown[]): unknown {
  return { apiVersion: 'image.openshift.io/v1', kind: 'ImageStream', metadata: metadataOf(name), ...(tags && { spec: { tags } }) };
}

/** runningObjects returns the objects that run an application and make it accessible. */
export function runningObjects({ name, image, tag, ports, route, env = [] }: Running): unknown[] {
  const metadata = metadataOf(name);
  const labels = { app: name, deploymentconfig: name };
  const nameOf = ({ port, protocol }: Port) => `${port}-${protocol.toLowerCase()}`;
  const container = {
    name,
    image,
    ...(ports.length > 0 && { ports: ports.map(({ port, protocol }) => ({ containerPort: port, protocol })) }),
    ...(env.length > 0 && { env }),
  };
  const change = { type: 'ConfigChange' };
  const objects: unknown[] = [
    {
      apiVersion: 'apps.openshift.io/v1',
      kind: 'DeploymentConfig',
      metadata,
      spec: {
        replicas: 1,
        selector: { deploymentconfig: name },
        template: { metadata: { labels }, spec: { containers: [container] } },
        triggers: tag ? [{ type: 'ImageChange', imageChangeParams: { automatic: true, containerNames: [name], from: { kind: 'ImageStreamTag', ...tag } } }, change] : [change],
      },
    },
  ];
  if (ports.length > 0) {
    const spec = { selector: { deploymentconfig: name }, ports: ports.map((port) => ({ name: nameOf(port), port: port.port, targetPort: port.port, protocol: port.protocol })) };
    objects.push({ apiVersion: 'v1', kind: 'Service', metadata, spec });
  }
  const [first] = ports.filter(({ protocol }) => protocol === 'TCP');
  if (route && first) {
    objects.push({ apiVersion: 'route.openshift.io/v1', kind: 'Route', metadata, spec: { to: { kind: 'Service', name }, port: { targetPort: nameOf(first) } } });
  }
  return objects;
}

/**
 * Detected describes a repository's content as determined by the server. language is spelled as in
 * builder images, or empty.
 */
export interface Detected {
  language: string;
  dockerfile: boolean;
}

/**
 * detect requests a description of a repository's content from the server, which reads repositories
 * only over HTTP.
 */
export function detect(project: string, { uri, ref, contextDir, secret }: Origin): Promise<Detected> {
  return get<Detected>(`/slipway/source?${new URLSearchParams({ namespace: project, uri, ref, dir: contextDir, secret })}`);
}

/** sourceTypes contains the types of secrets that can contain a repository's credentials. */
const sourceTypes = ['kubernetes.io/basic-auth', 'kubernetes.io/ssh-auth', 'Opaque'];

/**
 * sourceSecrets returns the names of a project's secrets that can contain a repository's
 * credentials.
 */
export async function sourceSecrets(project: string): Promise<string[]> {
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const { rows } = await get<{ rows: Pick<Row, 'cells'>[] }>(`/api/v1/namespaces/${encodeURIComponent(project)}/secrets`, { accept });
  return rows.filter(({ cells }) => sourceTypes.includes(String(cells[1]))).map(({ cells }) => String(cells[0]));
}

/**
 * detectable reports whether the server can read a repository. It returns false for an address with
 * a password, which must not be sent to the server.
 */
export function detectable(uri: string): boolean {
  return /^https?:\/\/[^/@\s]+\//.test(uri) && validURI(uri);
}

/** originOf returns the origin that another console page has passed to this page. */
export function originOf(state: unknown): Origin {
  const { uri, ref, contextDir, secret } = (state ?? {}) as Record<string, unknown>;
  const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
  return { uri: textOf(uri), ref: textOf(ref), contextDir: textOf(contextDir), secret: textOf(secret) };
}

/** linkedOrigin returns the origin in the query of a link. A link cannot select a secret. */
export function linkedOrigin(query: URLSearchParams): Origin {
  return { ...originOf(Object.fromEntries(query)), secret: '' };
}

/** gitOf returns the source of a build that reads a Git repository. */
function gitOf({ uri, ref, contextDir, secret }: Origin): object {
  return { type: 'Git', git: ref === '' ? { uri } : { uri, ref }, ...(contextDir === '' ? {} : { contextDir }), ...(secret === '' ? {} : { sourceSecret: { name: secret } }) };
}

/** builtObjects returns the objects that build and run an application. */
function builtObjects(name: string, source: object, strategy: { type: string; [name: string]: unknown }, running: Pick<Running, 'ports' | 'route'>): KubeObject[] {
  const output = { kind: 'ImageStreamTag', name: `${name}:latest` };
  // A Docker build has no image change trigger, because the Dockerfile specifies its base image.
  const triggers = [...(strategy.type === 'Source' ? [{ type: 'ImageChange', imageChange: {} }] : []), { type: 'ConfigChange' }];
  const config = {
    apiVersion: 'build.openshift.io/v1',
    kind: 'BuildConfig',
    metadata: metadataOf(name),
    spec: { source, strategy, output: { to: output }, triggers },
  };
  return [streamOf(name), config, ...runningObjects({ name, image: output.name, tag: { name: output.name }, ...running })] as KubeObject[];
}

/** objectsOf returns the objects that build and run an application and make it accessible. */
export function objectsOf(source: Source): KubeObject[] {
  const from = { kind: 'ImageStreamTag', namespace: source.namespace, name: `${source.stream}:${source.tag}` };
  const ports = [{ port: source.port, protocol: 'TCP' }];
  return builtObjects(source.name, gitOf(source), { type: 'Source', sourceStrategy: { from } }, { ports, route: source.route });
}

/** dockerObjects returns the objects for an application that is built from a Dockerfile. */
export function dockerObjects({ name, text, path, port, route, ...origin }: Dockerfile): KubeObject[] {
  const source = text === '' ? gitOf(origin) : { type: 'Dockerfile', dockerfile: text };
  const strategy = { type: 'Docker', dockerStrategy: text === '' && path !== '' ? { dockerfilePath: path } : {} };
  return builtObjects(name, source, strategy, { ports: [{ port, protocol: 'TCP' }], route });
}

const addressOf = ({ uri, ref }: Origin) => (ref === '' ? uri : `${uri}#${ref}`);

/**
 * dockerCommandOf returns the oc command that has the same effect as dockerObjects, if the
 * Dockerfile is in a repository.
 */
export function dockerCommandOf({ name, ...origin }: Dockerfile, project: string): string {
  const words = ['oc', 'new-app', '-n', project, addressOf(origin), '--strategy=docker', `--name=${name}`];
  return [...words, ...originFlags(origin)].map(quote).join(' ');
}

/** originFlags returns the flags of oc new-app for an origin. */
function originFlags({ contextDir, secret }: Origin): string[] {
  return [...(contextDir === '' ? [] : [`--context-dir=${contextDir}`]), ...(secret === '' ? [] : [`--source-secret=${secret}`])];
}

/** commandOf returns the oc command that has the same effect as objectsOf. */
export function commandOf(source: Source, project: string): string {
  const address = addressOf(source);
  const words = ['oc', 'new-app', '-n', project, `${source.namespace}/${source.stream}:${source.tag}~${address}`, `--name=${source.name}`, ...originFlags(source)];
  return words.map(quote).join(' ');
}

/** quote quotes a word for a shell if necessary. */
export function quote(word: string): string {
  return /^[\w@%+=:,./~#-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
