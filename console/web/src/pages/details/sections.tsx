import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { lazy, Suspense, type ReactNode } from 'react';
import { constraintKey } from '../../api/constraint';
import { isExpanding } from '../../api/drivers';
import { isPipeline } from '../../api/pipeline';
import type { EgressNetworkPolicy } from '../../api/policies';
import type { ClusterQuota as ClusterQuotaObject, LimitRange, QuotaStatus } from '../../api/quota';
import type { Route } from '../../api/routes';
import type { Condition, LooseObject } from '../../api/types';
import type { Container } from '../../api/workloads';
import { persistent } from '../../app/load';
import { access } from '../../text/access';
import { admin } from '../../text/admin';
import { drivers } from '../../text/drivers';
import { text } from '../../text/en';
import { network } from '../../text/network';
import { nodes } from '../../text/nodes';
import { pipelines } from '../../text/pipelines';
import { Copyable } from '../../ui/Copyable';
import { Loading } from '../../ui/Loading';
import { QuotaDonuts } from '../../ui/QuotaDonuts';
import type { Rule } from './Rules';
import { Secrets } from './Secrets';
import { Tags } from './Tags';
import { VolumeFailures } from './VolumeFailures';
import { Webhooks } from './Webhooks';

const Constraint = lazy(persistent(() => import('./Constraint')));
const NodeResources = lazy(persistent(() => import('./node/Resources')));
const ClusterQuota = lazy(persistent(() => import('./ClusterQuota')));
const EgressFirewall = lazy(persistent(() => import('../network/EgressFirewall')));
const Limits = lazy(persistent(() => import('../quota/Limits')));
const Grants = lazy(persistent(() => import('./Grants')));
const Decisions = lazy(persistent(() => import('../network/Decisions')));
const Reach = lazy(persistent(() => import('../network/Reach')));
const Pipeline = lazy(persistent(() => import('./Pipeline')));
const Runs = lazy(persistent(() => import('./Runs')));
const Rules = lazy(persistent(() => import('./Rules')));
const PodUsage = lazy(persistent(() => import('./node/Usage')));

/** later renders a section that is loaded when it is first shown. */
function later(section: ReactNode): ReactNode {
  return <Suspense fallback={<Loading />}>{section}</Suspense>;
}

/** sectionsOf returns tables with the parts of an object. It supports only certain kinds. */
export function sectionsOf(object: LooseObject): [title: string, section: ReactNode][] {
  switch (object.kind) {
    case 'Pod':
      return podSections(object);
    case 'Node':
      return [[nodes.resources, later(<NodeResources node={object} />)]];
    case 'BuildConfig':
      return [
        [isPipeline(object) ? pipelines.runs : text.overview.builds, later(<Runs config={object} />)],
        [text.builds.webhooks, <Webhooks key="webhooks" object={object} />],
      ];
    case 'Build':
      return isPipeline(object) ? [[pipelines.title, later(<Pipeline build={object} />)]] : [];
    case 'Route':
      return [[network.routers.decisions, later(<Decisions route={object as unknown as Route} />)]];
    case 'ConfigMap':
      return [[text.details.tabs.data, <Values key="data" values={(object.data ?? {}) as Record<string, string>} />]];
    case 'PersistentVolumeClaim':
      return claimSections(object);
    case 'Secret':
      return [[text.details.tabs.data, <Secrets key="data" data={(object.data ?? {}) as Record<string, string>} />]];
    case 'ResourceQuota':
      return [[text.sections.quota, <QuotaDonuts key="quota" status={object.status as QuotaStatus | undefined} />]];
    case 'LimitRange':
      return [[text.quota.title, later(<Limits range={object as unknown as LimitRange} />)]];
    case 'ClusterResourceQuota':
      return [[text.sections.quota, later(<ClusterQuota quota={object as unknown as ClusterQuotaObject} />)]];
    case 'EgressNetworkPolicy':
      return [[network.egress, later(<EgressFirewall policy={object as unknown as EgressNetworkPolicy} />)]];
    case 'User':
    case 'Group':
      return [[admin.users.roles, later(<Grants of={object} />)]];
    case 'ImageStream':
      return [[text.sections.tags, <Tags key="tags" stream={object} />]];
    case 'Role':
    case 'ClusterRole':
      return [[access.rules.title, later(<Rules rules={(object.rules ?? []) as Rule[]} />)]];
    case 'RoleBinding':
    case 'ClusterRoleBinding':
      return [[text.sections.subjects, <Subjects key="subjects" object={object} />]];
    default:
      return [];
  }
}

interface ContainerStatus {
  name: string;
  image?: string;
  ready?: boolean;
  restartCount?: number;
  state?: Record<string, { reason?: string; message?: string; exitCode?: number }>;
}

function podSections(pod: LooseObject): [string, ReactNode][] {
  const status = pod.status as { phase?: string; conditions?: Condition[]; containerStatuses?: ContainerStatus[]; initContainerStatuses?: ContainerStatus[] } | undefined;
  const sections: [string, ReactNode][] = [];
  const unscheduled = status?.conditions?.find((c) => c.type === 'PodScheduled' && c.status === 'False');
  if (unscheduled?.message) {
    sections.push([text.pod.waiting, <p key="waiting">{unscheduled.message}</p>]);
  } else if (status?.phase === 'Pending') {
    sections.push([text.pod.waiting, <VolumeFailures key="volumes" of={pod} none={drivers.noneOfPod} />]);
  }
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  if (containers.length > 0) {
    sections.push([text.sections.containers, <Containers key="containers" containers={containers} ports={portsOf(pod)} />]);
  }
  if (status?.phase === 'Running') {
    sections.push([nodes.usage, later(<PodUsage namespace={pod.metadata.namespace ?? ''} name={pod.metadata.name} />)]);
  }
  sections.push([network.ofPod, later(<Reach pod={pod} />)]);
  if (pod.metadata.annotations?.[constraintKey]) {
    sections.push([access.constraint.title, later(<Constraint pod={pod} />)]);
  }
  return sections;
}

function claimSections(claim: LooseObject): [string, ReactNode][] {
  const isPending = (claim.status as { phase?: string } | undefined)?.phase === 'Pending';
  const events = <VolumeFailures key="events" of={claim} none={drivers.noneOfClaim} />;
  if (isPending || isExpanding(claim)) {
    return [[isPending ? drivers.claimWaits : drivers.claimExpands, events]];
  }
  return [];
}

/**
 * portsOf returns the names and numbers of the ports of each container in a pod, keyed by the
 * container's name.
 */
export function portsOf(pod: LooseObject): ReadonlyMap<string, string> {
  const { containers = [], initContainers = [] } = pod.spec as { containers?: Container[]; initContainers?: Container[] };
  const port = ({ name, containerPort, protocol = 'TCP' }: NonNullable<Container['ports']>[number]) => `${name ? name + ': ' : ''}${containerPort}/${protocol}`;
  return new Map([...initContainers, ...containers].map(({ name, ports = [] }) => [name, ports.map(port).join(', ')]));
}

/** stateOf describes a container's state, such as waiting: ImagePullBackOff. */
function stateOf(status: ContainerStatus): string {
  const [state, details] = Object.entries(status.state ?? {})[0] ?? ['-', {}];
  const reason = [details.reason, details.message].filter(Boolean).join(': ');
  return reason ? `${state}: ${reason}` : state;
}

function Containers({ containers, ports }: { containers: ContainerStatus[]; ports: ReadonlyMap<string, string> }) {
  return (
    <Table aria-label={text.sections.containers} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.name}</Th>
          <Th>{text.pod.state}</Th>
          <Th>{text.pod.restarts}</Th>
          <Th>{text.pod.ports}</Th>
          <Th>{text.pod.image}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {containers.map((container) => (
          <Tr key={container.name}>
            <Td dataLabel={text.name}>{container.name}</Td>
            <Td dataLabel={text.pod.state} modifier="breakWord">
              {stateOf(container)}
            </Td>
            <Td dataLabel={text.pod.restarts}>{container.restartCount ?? 0}</Td>
            <Td dataLabel={text.pod.ports}>{ports.get(container.name) || '-'}</Td>
            <Td dataLabel={text.pod.image} className="console-mono">
              {container.image}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

function Values({ values }: { values: Record<string, string> }) {
  const entries = Object.entries(values);
  if (entries.length === 0) {
    return <p>{text.none}</p>;
  }
  return (
    <>
      {entries.map(([key, value]) => (
        <div key={key}>
          <strong>{key}</strong>
          <Copyable label={key} isCode isExpanded={value.includes('\n')}>
            {value}
          </Copyable>
        </div>
      ))}
    </>
  );
}

function Subjects({ object }: { object: LooseObject }) {
  const role = object.roleRef as { kind: string; name: string };
  const subjects = (object.subjects ?? []) as { kind: string; name: string; namespace?: string }[];
  return (
    <>
      <p>{`${role.kind} ${role.name}`}</p>
      <Table aria-label={text.sections.subjects} variant="compact">
        <Thead>
          <Tr>
            <Th>{text.details.type}</Th>
            <Th>{text.name}</Th>
            <Th>{text.list.namespace}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {subjects.map((subject) => (
            <Tr key={`${subject.kind} ${subject.namespace} ${subject.name}`}>
              <Td dataLabel={text.details.type}>{subject.kind}</Td>
              <Td dataLabel={text.name}>{subject.name}</Td>
              <Td dataLabel={text.list.namespace}>{subject.namespace ?? '-'}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}
