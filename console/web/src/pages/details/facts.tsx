import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { jolokiaPort } from '../../api/jolokia';
import { admission, addressOf, type Route } from '../../api/routes';
import type { LooseObject } from '../../api/types';
import { desiredOf, selectorOf, toSelector, type Workload } from '../../api/workloads';
import { edits } from '../../text/edits';
import { text } from '../../text/en';
import { admin } from '../../text/admin';
import { java } from '../../text/java';
import { nodeFacts } from './node/facts';

/** Fact is a term with its value. */
export type Fact = [term: string, value: ReactNode];

const workloadKinds = ['Deployment', 'DeploymentConfig', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController'];

/** factsOf returns the most important facts about an object. It supports only certain kinds. */
export function factsOf(object: LooseObject, project: string | undefined): Fact[] {
  if (workloadKinds.includes(object.kind)) {
    return workloadFacts(object as unknown as Workload);
  }
  switch (object.kind) {
    case 'Pod':
      return podFacts(object);
    case 'Node':
      return nodeFacts(object);
    case 'Service':
      return serviceFacts(object);
    case 'Route':
      return routeFacts(object as unknown as Route, project);
    case 'PersistentVolumeClaim':
      return claimFacts(object);
    case 'VolumeSnapshot':
      return snapshotFacts(object, project);
    case 'Build':
      return buildFacts(object, project);
    case 'BuildConfig':
      return buildConfigFacts(object, project);
    case 'User':
    case 'Group':
    case 'Identity':
      return userFacts(object);
    case 'ServiceInstance':
    case 'ServiceBinding':
      return serviceCatalogFacts(object, project);
    default:
      return [];
  }
}

/** at returns the field at a path such as spec.nodeName, if the field is a string or a number. */
export function at(object: unknown, path: string): string {
  let value: unknown = object;
  for (const name of path.split('.')) {
    value = (value as Record<string, unknown> | null | undefined)?.[name];
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}

function workloadFacts(workload: Workload): Fact[] {
  const status = workload.status ?? {};
  const ready = status.readyReplicas ?? status.numberReady ?? 0;
  const facts: Fact[] = [
    [text.workload.replicas, `${text.workload.ready}: ${ready}/${desiredOf(workload)}`],
    [text.workload.selector, <code key="selector">{toSelector(selectorOf(workload)) || text.none}</code>],
  ];
  const strategy = at(workload, 'spec.strategy.type') || at(workload, 'spec.updateStrategy.type');
  if (strategy) {
    facts.push([text.workload.strategy, strategy]);
  }
  if (workload.kind === 'StatefulSet') {
    facts.push(...statefulSetFacts(workload as Workload & StatefulSet));
  }
  for (const container of workload.spec.template?.spec?.containers ?? []) {
    facts.push([`${text.pod.image} (${container.name})`, <span key={container.name} className="console-mono">{container.image}</span>]);
  }
  return facts;
}

interface StatefulSet {
  spec: { serviceName?: string; podManagementPolicy?: string; volumeClaimTemplates?: { metadata: { name: string }; spec: { resources?: { requests?: { storage?: string } } } }[] };
}

function statefulSetFacts({ metadata, spec }: Workload & StatefulSet): Fact[] {
  const templates = spec.volumeClaimTemplates ?? [];
  return [
    [text.facts.governingService, spec.serviceName ? <Link key="service" to={`/project/${metadata.namespace}/services/${spec.serviceName}`}>{spec.serviceName}</Link> : text.none],
    [text.facts.podManagement, spec.podManagementPolicy ?? '-'],
    [
      text.facts.claimTemplates,
      templates.length === 0
        ? text.none
        : templates.map(({ metadata: { name }, spec: claim }) => (
            <div key={name}>{text.facts.claimTemplate(name, claim.resources?.requests?.storage ?? '-', `${name}-${metadata.name}-0, …`)}</div>
          )),
    ],
  ];
}

function podFacts(pod: LooseObject): Fact[] {
  const connect = `/project/${pod.metadata.namespace}/pods/${pod.metadata.name}/java`;
  const jvm: Fact[] = jolokiaPort(pod) === undefined ? [] : [[java.title, <Link key="java" to={connect}>{java.connect}</Link>]];
  return [
    ...jvm,
    [text.pod.phase, at(pod, 'status.reason') || at(pod, 'status.phase') || '-'],
    [text.pod.node, at(pod, 'spec.nodeName') || '-'],
    [text.pod.ip, at(pod, 'status.podIP') || '-'],
    [text.facts.serviceAccount, at(pod, 'spec.serviceAccountName') || '-'],
    [text.facts.constraint, pod.metadata.annotations?.['openshift.io/scc'] ?? '-'],
  ];
}

interface ServicePort {
  name?: string;
  port: number;
  targetPort?: number | string;
  protocol?: string;
  nodePort?: number;
}

function serviceFacts(service: LooseObject): Fact[] {
  const spec = service.spec as { ports?: ServicePort[]; selector?: Record<string, string> };
  const ports = (spec.ports ?? []).map((p) => `${p.name ? p.name + ': ' : ''}${p.port}/${p.protocol ?? 'TCP'} → ${p.targetPort ?? p.port}${p.nodePort ? ` (${p.nodePort})` : ''}`);
  return [
    [text.details.type, at(service, 'spec.type')],
    [text.facts.clusterIP, at(service, 'spec.clusterIP') || '-'],
    [text.facts.hostName, <code key="host">{`${service.metadata.name}.${service.metadata.namespace}.svc`}</code>],
    [text.pod.ports, ports.length > 0 ? ports.map((port) => <div key={port}>{port}</div>) : text.none],
    [text.workload.selector, <code key="selector">{toSelector(spec.selector ?? {}) || text.none}</code>],
  ];
}

function routeFacts(route: Route, project: string | undefined): Fact[] {
  const address = addressOf(route);
  const { admitted, reason } = admission(route);
  const backends = [route.spec.to, ...(route.spec.alternateBackends ?? [])].filter((b) => b?.name);
  return [
    [
      text.facts.address,
      address ? (
        <a key="address" href={address} target="_blank" rel="noreferrer">
          {address}
        </a>
      ) : (
        (route.spec.host ?? '-')
      ),
    ],
    [text.facts.admitted, admitted ? text.facts.yes : reason || text.facts.no],
    [text.facts.tls, route.spec.tls?.termination ?? text.none],
    [
      text.overview.services,
      backends.map((backend) => (
        <div key={backend?.name}>
          <Link to={`/project/${project}/services/${backend?.name}`}>{backend?.name}</Link>
          {backends.length > 1 && ` (${backend?.weight ?? 0})`}
        </div>
      )),
    ],
  ];
}

function claimFacts(claim: LooseObject): Fact[] {
  const modes = (claim.spec as { accessModes?: string[] }).accessModes ?? [];
  return [
    [text.pod.phase, at(claim, 'status.phase') || '-'],
    [text.facts.requested, at(claim, 'spec.resources.requests.storage') || '-'],
    [text.facts.capacity, at(claim, 'status.capacity.storage') || '-'],
    [text.facts.accessModes, modes.join(', ') || '-'],
    [text.facts.storageClass, at(claim, 'spec.storageClassName') || '-'],
    [text.facts.volume, at(claim, 'spec.volumeName') || '-'],
  ];
}

function snapshotFacts(snapshot: LooseObject, project: string | undefined): Fact[] {
  const t = edits.snapshot;
  const claim = at(snapshot, 'spec.source.persistentVolumeClaimName');
  const failure = at(snapshot, 'status.error.message');
  return [
    [t.ready, at(snapshot, 'status.readyToUse') === 'true' ? text.facts.yes : text.facts.no],
    [t.claim, claim ? <Link key="claim" to={`/project/${project}/persistentvolumeclaims/${claim}`}>{claim}</Link> : '-'],
    [t.size, at(snapshot, 'status.restoreSize') || '-'],
    [t.class, at(snapshot, 'spec.volumeSnapshotClassName') || '-'],
    ...(failure ? [[t.failure, failure] as Fact] : []),
  ];
}

function buildFacts(build: LooseObject, project: string | undefined): Fact[] {
  const config = at(build, 'status.config.name');
  return [
    [text.pod.phase, [at(build, 'status.phase'), at(build, 'status.message')].filter(Boolean).join(': ') || '-'],
    [text.details.type, at(build, 'spec.strategy.type') || '-'],
    [text.facts.output, at(build, 'status.outputDockerImageReference') || '-'],
    [
      text.facts.buildConfig,
      config ? (
        <Link key="config" to={`/project/${project}/buildconfigs.build.openshift.io/${config}`}>
          {config}
        </Link>
      ) : (
        '-'
      ),
    ],
    [text.facts.commit, at(build, 'spec.revision.git.commit') || '-'],
  ];
}

/**
 * imageLink returns a link to an image's image stream, or the image's name if the image does not
 * belong to an image stream.
 */
function imageLink(reference: { kind?: string; name?: string; namespace?: string } | undefined, project: string | undefined): ReactNode {
  if (reference?.kind !== 'ImageStreamTag' || !reference.name) {
    return reference?.name ?? text.none;
  }
  const [stream] = reference.name.split(':');
  return <Link to={`/project/${reference.namespace ?? project}/imagestreams.image.openshift.io/${stream}`}>{`${reference.namespace ? reference.namespace + '/' : ''}${reference.name}`}</Link>;
}

interface BuildConfigSpec {
  strategy?: Record<string, { from?: { kind?: string; name?: string; namespace?: string } } | string>;
  output?: { to?: { kind?: string; name?: string; namespace?: string } };
}

function buildConfigFacts(object: LooseObject, project: string | undefined): Fact[] {
  const { strategy = {}, output } = object.spec as BuildConfigSpec;
  const details = Object.values(strategy).find((value) => typeof value === 'object');
  return [
    [text.workload.strategy, at(object, 'spec.strategy.type') || '-'],
    [text.catalog.repository, at(object, 'spec.source.git.uri') || text.none],
    [text.builds.builder, imageLink(typeof details === 'object' ? details.from : undefined, project)],
    [text.facts.output, imageLink(output?.to, project)],
  ];
}

/** userFacts returns the facts about a user, group or identity. */
function userFacts(object: LooseObject): Fact[] {
  const t = admin.users;
  const { identities, users } = object as unknown as { identities?: string[] | null; users?: string[] | null };
  const link = (resource: string, name: string) => (
    <div key={name}>
      <Link to={`/cluster/${resource}/${encodeURIComponent(name)}`}>{name}</Link>
    </div>
  );
  switch (object.kind) {
    case 'User':
      return [
        [t.fullName, at(object, 'fullName') || '-'],
        [t.identities, identities?.length ? identities.map((name) => link('identities.user.openshift.io', name)) : text.none],
      ];
    case 'Group':
      return [[t.members, users?.length ? users.map((name) => link('users.user.openshift.io', name)) : t.noMembers]];
    default: {
      const user = at(object, 'user.name');
      return [
        [t.provider, at(object, 'providerName') || '-'],
        [t.providerName, at(object, 'providerUserName') || '-'],
        [t.user, user ? link('users.user.openshift.io', user) : text.none],
      ];
    }
  }
}

/**
 * parameterFact lists the parameters of a service instance or binding. It omits values that are in
 * secrets.
 */
function parameterFact(object: LooseObject): Fact {
  const { parameters, parametersFrom } = object.spec as { parameters?: Record<string, unknown>; parametersFrom?: { secretKeyRef?: { name: string; key: string } }[] };
  const lines = [
    ...Object.entries(parameters ?? {}).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`),
    ...(parametersFrom ?? []).flatMap(({ secretKeyRef: from }) => (from ? [text.services.fromSecret(from.name, from.key)] : [])),
  ];
  return [text.services.parametersOf, lines.length === 0 ? text.none : lines.map((line) => <div key={line}>{line}</div>)];
}

function serviceCatalogFacts(object: LooseObject, project: string | undefined): Fact[] {
  const instance = at(object, 'spec.instanceRef.name');
  const status: Fact = [text.details.status, at(object, 'status.lastConditionState') || '-'];
  if (instance !== '') {
    const secret = at(object, 'spec.secretName');
    return [
      status,
      [text.services.instance, <Link key="instance" to={`/project/${project}/serviceinstances.servicecatalog.k8s.io/${instance}`}>{instance}</Link>],
      [text.services.secret, <Link key="secret" to={`/project/${project}/secrets/${secret}`}>{secret}</Link>],
      parameterFact(object),
    ];
  }
  const dashboard = at(object, 'status.dashboardURL');
  return [
    status,
    [text.services.serviceClass, at(object, 'spec.clusterServiceClassExternalName') || at(object, 'spec.serviceClassExternalName') || at(object, 'spec.clusterServiceClassName') || '-'],
    [text.services.plan, at(object, 'spec.clusterServicePlanExternalName') || at(object, 'spec.servicePlanExternalName') || at(object, 'spec.clusterServicePlanName') || '-'],
    [
      text.services.dashboard,
      /^https?:\/\//.test(dashboard) ? (
        <a key="dashboard" href={dashboard} target="_blank" rel="noreferrer">
          {dashboard}
        </a>
      ) : (
        dashboard || text.none
      ),
    ],
    parameterFact(object),
  ];
}
