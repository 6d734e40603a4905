import type { KubeObject } from './types';

/** Source is what a person says about an application that is built from source. */
export interface Source {
  name: string;
  namespace: string;
  stream: string;
  tag: string;
  uri: string;
  ref: string;
  contextDir: string;
  port: number;
  route: boolean;
}

const generatedKey = 'openshift.io/generated-by';

/** validURI reports whether an address is one that git can fetch from. */
export function validURI(uri: string): boolean {
  return /^(https?|ssh|git):\/\/[^\s/]+\/\S+$/.test(uri) || /^[\w.-]+@[\w.-]+:\S+$/.test(uri);
}

/** objectsOf returns the objects of an application: what is built, how it runs, and its address. */
export function objectsOf(source: Source): KubeObject[] {
  const { name } = source;
  const metadata = { name, labels: { app: name }, annotations: { [generatedKey]: 'OpenShiftWebConsole' } };
  const git = source.ref === '' ? { uri: source.uri } : { uri: source.uri, ref: source.ref };
  const builder = { kind: 'ImageStreamTag', namespace: source.namespace, name: `${source.stream}:${source.tag}` };
  const output = { kind: 'ImageStreamTag', name: `${name}:latest` };
  const labels = { app: name, deploymentconfig: name };
  const objects: unknown[] = [
    { apiVersion: 'image.openshift.io/v1', kind: 'ImageStream', metadata },
    {
      apiVersion: 'build.openshift.io/v1',
      kind: 'BuildConfig',
      metadata,
      spec: {
        source: { type: 'Git', git, ...(source.contextDir === '' ? {} : { contextDir: source.contextDir }) },
        strategy: { type: 'Source', sourceStrategy: { from: builder } },
        output: { to: output },
        triggers: [{ type: 'ImageChange', imageChange: {} }, { type: 'ConfigChange' }],
      },
    },
    {
      apiVersion: 'apps.openshift.io/v1',
      kind: 'DeploymentConfig',
      metadata,
      spec: {
        replicas: 1,
        selector: { deploymentconfig: name },
        template: { metadata: { labels }, spec: { containers: [{ name, image: `${name}:latest`, ports: [{ containerPort: source.port, protocol: 'TCP' }] }] } },
        triggers: [{ type: 'ImageChange', imageChangeParams: { automatic: true, containerNames: [name], from: output } }, { type: 'ConfigChange' }],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { deploymentconfig: name }, ports: [{ name: `${source.port}-tcp`, port: source.port, targetPort: source.port, protocol: 'TCP' }] },
    },
  ];
  if (source.route) {
    objects.push({ apiVersion: 'route.openshift.io/v1', kind: 'Route', metadata, spec: { to: { kind: 'Service', name }, port: { targetPort: `${source.port}-tcp` } } });
  }
  return objects as KubeObject[];
}

/** commandOf is the command that does the same. */
export function commandOf(source: Source, project: string): string {
  const address = source.ref === '' ? source.uri : `${source.uri}#${source.ref}`;
  const words = ['oc', 'new-app', '-n', project, `${source.namespace}/${source.stream}:${source.tag}~${address}`, `--name=${source.name}`];
  if (source.contextDir !== '') {
    words.push(`--context-dir=${source.contextDir}`);
  }
  return words.map(quote).join(' ');
}

/** quote quotes a word for a shell, if it needs that. */
export function quote(word: string): string {
  return /^[\w@%+=:,./~#-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
