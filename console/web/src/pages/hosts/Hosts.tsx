import { Alert, ExpandableSection, Label, StackItem } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { useObjects } from '../../api/hooks';
import { clusterPath, hostOf, isWell, validity, type Cluster, type Host, type Report } from '../../api/hosts';
import { get } from '../../api/http';
import { bytes } from '../../api/image';
import { text } from '../../text/en';
import { nodes } from '../../text/nodes';
import { Age } from '../../ui/Age';
import { DataTable } from '../../ui/DataTable';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { Panel } from '../../ui/Panel';
import { StackPage } from '../../ui/StackPage';

const t = nodes.hosts;

/**
 * refreshInterval is the time between two requests for etcd's members, which clients cannot watch.
 */
const refreshInterval = 10_000;

/** Component shows the components on each host, and etcd's members. */
export function Component() {
  const snapshot = useObjects('/api/v1/nodes');
  const cluster = useQuery({ queryKey: [clusterPath], queryFn: () => get<Cluster>(clusterPath), refetchInterval: refreshInterval, retry: false });
  if (snapshot.error && !snapshot.loaded) {
    return <Failure error={snapshot.error} />;
  }
  const hosts = snapshot.items.map(hostOf).sort((a, b) => a.name.localeCompare(b.name));
  return (
    <StackPage title={t.title} body={t.body}>
      <Interrupted snapshots={[snapshot]} />
      {!snapshot.loaded && <Loading />}
      {hosts.map((host) => (
        <Panel key={host.uid} title={<Heading host={host} />}>
          {host.reason && <Alert isInline component="h3" variant="danger" title={host.reason} />}
          {host.report ? <Details name={host.name} report={host.report} /> : <p>{t.unknown}</p>}
        </Panel>
      ))}
      {cluster.error && (
        <StackItem>
          <Alert isInline component="h2" variant="warning" title={cluster.error.message} />
        </StackItem>
      )}
      {cluster.data && <Members cluster={cluster.data} />}
    </StackPage>
  );
}

function Heading({ host }: { host: Host }) {
  return (
    <>
      <Link to={`/cluster/nodes/${encodeURIComponent(host.name)}`}>{host.name}</Link> <Label color={host.ready ? 'green' : 'red'}>{host.ready ? t.ready : t.notReady}</Label>{' '}
      {host.report?.version && <Label variant="outline">{`${t.version} ${host.report.version}`}</Label>}
    </>
  );
}

function Details({ name, report }: { name: string; report: Report }) {
  const ill = report.components.filter((component) => !isWell(component));
  const components = (
    <DataTable
      label={t.componentsOf(name)}
      items={[...ill, ...report.components.filter(isWell)]}
      keyOf={(component) => `${component.process} ${component.name}`}
      empty={t.unknown}
      columns={[
        { title: t.component, cell: (component) => component.name },
        { title: t.process, cell: (component) => component.process },
        { title: t.state, cell: (component) => <Label color={isWell(component) ? 'green' : 'orange'}>{component.state}</Label> },
        { title: t.since, cell: (component) => <Age of={component.since} /> },
        { title: t.note, cell: (component) => component.note ?? '-' },
      ]}
    />
  );
  const now = Date.now();
  const urgent = report.certificates.some((certificate) => validity(certificate, now) !== 'valid');
  const colors = { valid: 'green', soon: 'orange', expired: 'red' } as const;
  return (
    <>
      <ExpandableSection toggleText={ill.length === 0 ? t.all(report.components.length) : `${t.components}: ${ill.map((component) => component.name).join(', ')}`} isDetached={false}>
        {components}
      </ExpandableSection>
      <ExpandableSection toggleText={urgent ? `${t.certificates}!` : t.certificates}>
        <DataTable
          label={t.certificatesOf(name)}
          items={[...report.certificates].sort((a, b) => a.end.localeCompare(b.end))}
          keyOf={(certificate) => certificate.name}
          empty={t.noCertificates}
          columns={[
            { title: t.certificate, cell: (certificate) => certificate.name, mono: true },
            {
              title: t.ends,
              cell: (certificate) => {
                const state = validity(certificate, now);
                return <Label color={colors[state]}>{`${certificate.end.slice(0, 10)}${state === 'valid' ? '' : ` (${state === 'soon' ? t.endsSoon : t.expired})`}`}</Label>;
              },
            },
          ]}
        />
      </ExpandableSection>
    </>
  );
}

function Members({ cluster }: { cluster: Cluster }) {
  return (
    <>
      <Panel title={t.etcd}>
        <DataTable
          label={t.etcd}
          items={cluster.etcd ?? []}
          keyOf={(member) => member.name}
          empty={t.noMembers}
          columns={[
            { title: t.member, cell: (member) => member.name },
            { title: t.role, cell: (member) => <>{member.role} {member.leader && <Label color="blue">{t.leader}</Label>}</> },
            { title: t.behind, cell: (member) => member.behind },
            { title: t.size, cell: (member) => bytes(member.size) },
            { title: t.version, cell: (member) => member.version || '-' },
            { title: t.problem, cell: (member) => (member.problem ? <Label color="red">{member.problem}</Label> : text.none) },
          ]}
        />
      </Panel>
      {(cluster.leaders ?? []).length > 0 && (
        <Panel title={t.leaders}>
          <DataTable
            label={t.leaders}
            items={cluster.leaders}
            keyOf={(leader) => leader.group}
            empty={text.none}
            columns={[
              { title: t.group, cell: (leader) => leader.group },
              { title: t.master, cell: (leader) => leader.master },
            ]}
          />
        </Panel>
      )}
    </>
  );
}
