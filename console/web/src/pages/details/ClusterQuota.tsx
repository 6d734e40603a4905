import { ExpandableSection, Title } from '@patternfly/react-core';
import { Link } from 'react-router';
import type { ClusterQuota as Quota } from '../../api/quota';
import { describeSelector } from '../../api/policies';
import type { LabelSelector } from '../../api/selector';
import { admin } from '../../text/admin';
import { text } from '../../text/en';
import { QuotaDonuts } from '../../ui/QuotaDonuts';

const t = admin.clusterQuota;

interface Selector {
  labels?: LabelSelector | null;
  annotations?: Record<string, string> | null;
}

/** ClusterQuota shows the usage of a quota, in total and by project. */
export default function ClusterQuota({ quota }: { quota: Quota & { spec?: { selector?: Selector } } }) {
  const { labels, annotations } = quota.spec?.selector ?? {};
  const selector = [describeSelector(labels ?? undefined), ...Object.entries(annotations ?? {}).map(([key, value]) => `${key}=${value}`)].filter(Boolean).join(', ');
  const projects = quota.status?.namespaces ?? [];
  return (
    <>
      <p>
        {t.selects}: <code>{selector || text.none}</code>
      </p>
      <Title headingLevel="h3">{t.total}</Title>
      <QuotaDonuts status={quota.status?.total} />
      <Title headingLevel="h3">{t.projects}</Title>
      {projects.length === 0 && <p>{t.none}</p>}
      {projects.map(({ namespace, status }) => (
        <ExpandableSection key={namespace} toggleText={namespace}>
          <Link to={`/project/${namespace}/quota`}>{text.quota.title}</Link>
          <QuotaDonuts status={{ hard: quota.status?.total?.hard, used: status?.used }} />
        </ExpandableSection>
      ))}
    </>
  );
}
