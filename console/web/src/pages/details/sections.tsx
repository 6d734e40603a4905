import { Button, ClipboardCopy, Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useState, type ReactNode } from 'react';
import type { QuotaStatus } from '../../api/quota';
import type { Condition, LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { QuotaDonuts } from '../../ui/QuotaDonuts';
import { Layers } from './Layers';
import { Secrets } from './Secrets';
import { VolumeFailures } from './VolumeFailures';
import { Webhooks } from './Webhooks';

/** sectionsOf returns tables with the parts of objects of some kinds. */
export function sectionsOf(object: LooseObject): [title: string, section: ReactNode][] {
  switch (object.kind) {
    case 'Pod':
      return podSections(object);
    case 'BuildConfig':
      return [[text.builds.webhooks, <Webhooks key="webhooks" object={object} />]];
    case 'ConfigMap':
      return [[text.details.tabs.data, <Values key="data" values={(object.data ?? {}) as Record<string, string>} />]];
    case 'Secret':
      return [[text.details.tabs.data, <Secrets key="data" data={(object.data ?? {}) as Record<string, string>} />]];
    case 'ResourceQuota':
      return [[text.sections.quota, <QuotaDonuts key="quota" status={object.status as QuotaStatus | undefined} />]];
    case 'ImageStream':
      return [[text.sections.tags, <Tags key="tags" stream={object} />]];
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
  const status = pod.status as { conditions?: Condition[]; containerStatuses?: ContainerStatus[]; initContainerStatuses?: ContainerStatus[] } | undefined;
  const sections: [string, ReactNode][] = [];
  const unscheduled = status?.conditions?.find((c) => c.type === 'PodScheduled' && c.status === 'False');
  if (unscheduled?.message) {
    sections.push([text.pod.waiting, <p key="waiting">{unscheduled.message}</p>]);
  } else if ((pod.status as { phase?: string } | undefined)?.phase === 'Pending') {
    sections.push([text.pod.waiting, <VolumeFailures key="volumes" pod={pod} />]);
  }
  const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  if (containers.length > 0) {
    sections.push([text.sections.containers, <Containers key="containers" containers={containers} />]);
  }
  return sections;
}

/** stateOf describes the state of a container, such as waiting: ImagePullBackOff. */
function stateOf(status: ContainerStatus): string {
  const [state, details] = Object.entries(status.state ?? {})[0] ?? ['-', {}];
  const reason = [details.reason, details.message].filter(Boolean).join(': ');
  return reason ? `${state}: ${reason}` : state;
}

function Containers({ containers }: { containers: ContainerStatus[] }) {
  return (
    <Table aria-label={text.sections.containers} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.name}</Th>
          <Th>{text.pod.state}</Th>
          <Th>{text.pod.restarts}</Th>
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
          <ClipboardCopy isReadOnly isCode isExpanded={value.includes('\n')} variant="expansion" hoverTip="Copy" clickTip="Copied" textAriaLabel={key}>
            {value}
          </ClipboardCopy>
        </div>
      ))}
    </>
  );
}

interface StreamStatus {
  dockerImageRepository?: string;
  tags?: { tag: string; items?: { image: string; dockerImageReference: string; created: string }[]; conditions?: Condition[] }[];
}

function Tags({ stream }: { stream: LooseObject }) {
  const status = stream.status as StreamStatus | undefined;
  const [image, setImage] = useState<string>();
  const { name, namespace = '' } = stream.metadata;
  return (
    <>
      <Table aria-label={text.sections.tags} variant="compact">
        <Thead>
          <Tr>
            <Th>{text.sections.tag}</Th>
            <Th>{text.pod.image}</Th>
            <Th>{text.details.status}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {(status?.tags ?? []).map((tag) => {
            const failure = tag.conditions?.find((c) => c.status === 'False');
            return (
              <Tr key={tag.tag}>
                <Td dataLabel={text.sections.tag}>{tag.tag}</Td>
                <Td dataLabel={text.pod.image} className="console-mono">
                  {tag.items?.[0]?.dockerImageReference ?? '-'}{' '}
                  {tag.items?.[0] && (
                    <Button variant="link" isInline onClick={() => setImage(tag.items?.[0]?.image)}>
                      {text.image.show(tag.tag)}
                    </Button>
                  )}
                </Td>
                <Td dataLabel={text.details.status}>{failure ? <Label color="red">{failure.message ?? failure.reason}</Label> : <Label color="green">{text.sections.imported}</Label>}</Td>
              </Tr>
            );
          })}
        </Tbody>
      </Table>
      {image && <Layers key={image} namespace={namespace} stream={name} image={image} close={() => setImage(undefined)} />}
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
