import { Card, CardBody, CardTitle, EmptyState, EmptyStateBody, Label, PageSection, Stack, StackItem, Title } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link, useParams } from 'react-router';
import { pathOf, type Resource, type Resources } from '../../api/discovery';
import { isRefusal, type Event } from '../../api/events';
import { useObjects, useResources } from '../../api/hooks';
import { get } from '../../api/http';
import { consumptionOf, type ClusterQuota, type LimitRange, type QuotaStatus, type ResourceQuota } from '../../api/quota';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { EventList } from '../../ui/EventList';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { QuotaDonuts } from '../../ui/QuotaDonuts';
import { useTitle } from '../../ui/useTitle';
import { quotaMessage } from '../../app/constants';
import { linkTo } from '../../app/links';
import Limits from './Limits';
import { Message } from './Message';

const quotaID = 'resourcequotas';
const clusterQuotaID = 'appliedclusterresourcequotas.quota.openshift.io';
const limitRangeID = 'limitranges';

/** Component shows a project's limits and usage. */
export function Component() {
  const { project = '' } = useParams();
  useTitle(text.quota.title, project);
  const resources = useResources();
  return resources ? <Page project={project} resources={resources} /> : <Loading />;
}

function Page({ project, resources }: { project: string; resources: Resources }) {
  const path = (id: string) => {
    const resource = resources.get(id);
    return resource ? pathOf(resource, project) : '';
  };
  const quotas = useObjects<ResourceQuota>(path(quotaID));
  const ranges = useObjects<LimitRange>(path(limitRangeID));
  const refused = useObjects<Event>(path('events'), { fieldSelector: 'type=Warning' }).items.filter(isRefusal);
  if (quotas.error && !quotas.loaded) {
    return <Failure error={quotas.error} project={project} />;
  }
  const link = (id: string, object: KubeObject) => <Link to={linkTo(resources.get(id) as Resource, project, object.metadata.name)}>{object.metadata.name}</Link>;
  const clusterQuotas = resources.get(clusterQuotaID);
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.quota.title}</Title>
        <Interrupted snapshots={[quotas, ranges]} />
      </PageSection>
      <PageSection isFilled>
        {!quotas.loaded || !ranges.loaded ? (
          <Loading />
        ) : (
          <Stack hasGutter>
            {quotas.items.length === 0 && ranges.items.length === 0 && (
              <EmptyState headingLevel="h2" titleText={text.quota.empty}>
                <EmptyStateBody>{text.quota.emptyBody}</EmptyStateBody>
              </EmptyState>
            )}
            {quotas.items.map((quota) => (
              <StackItem key={quota.metadata.uid}>
                <Quota title={link(quotaID, quota)} scopes={quota.spec?.scopes} status={quota.status} />
              </StackItem>
            ))}
            {clusterQuotas && <ClusterQuotas path={pathOf(clusterQuotas, project)} />}
            {refused.length > 0 && (
              <StackItem>
                <Card>
                  <CardTitle component="h2">{text.quota.refused}</CardTitle>
                  <CardBody>
                    <EventList events={refused} />
                  </CardBody>
                </Card>
              </StackItem>
            )}
            {ranges.items.map((range) => (
              <StackItem key={range.metadata.uid}>
                <Card>
                  <CardTitle component="h2">{link(limitRangeID, range)}</CardTitle>
                  <CardBody>
                    <Limits range={range} />
                  </CardBody>
                </Card>
              </StackItem>
            ))}
          </Stack>
        )}
      </PageSection>
    </>
  );
}

/**
 * ClusterQuotas shows the ClusterResourceQuotas that include this project. It does not update them,
 * because clients cannot watch them.
 */
function ClusterQuotas({ path }: { path: string }) {
  const { data } = useQuery({ queryKey: [path], queryFn: () => get<{ items: ClusterQuota[] }>(path) });
  return data?.items.map((quota) => (
    <StackItem key={quota.metadata.name}>
      <Quota title={text.quota.cluster(quota.metadata.name)} status={quota.status?.total} />
    </StackItem>
  ));
}

function Quota({ title, scopes, status }: { title: ReactNode; scopes?: string[]; status: QuotaStatus | undefined }) {
  const exceeded = consumptionOf(status).filter(({ share }) => share >= 1);
  return (
    <Card>
      <CardTitle component="h2">
        {title}{' '}
        {scopes?.map((scope) => (
          <Label key={scope} variant="outline">
            {scope}
          </Label>
        ))}
        {exceeded.length > 0 && <Label color="red">{text.quota.reached(exceeded.map(({ resource }) => resource).join(', '))}</Label>}
      </CardTitle>
      <CardBody>
        <QuotaDonuts status={status} />
        {exceeded.map(({ resource }) => quotaMessage(resource)).filter(Boolean).map((html) => (
          <Message key={html} html={html} />
        ))}
      </CardBody>
    </Card>
  );
}
