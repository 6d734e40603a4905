import { Alert, Breadcrumb, BreadcrumbItem, Flex, FlexItem, PageSection, Tab, Tabs, TabTitleText, Title } from '@patternfly/react-core';
import { Suspense } from 'react';
import { Link, useNavigate, useParams } from 'react-router';
import { ApiError } from '../../api/http';
import type { Resource, Resources } from '../../api/discovery';
import { noRights, useObject, useResources, useReview } from '../../api/hooks';
import type { LooseObject } from '../../api/types';
import { label } from '../../app/navigation';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Interrupted } from '../../ui/Interrupted';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { Component as NotFound } from '../NotFound';
import { Actions } from './Actions';
import { tabsOf } from './tabs';

/** Component shows an object's page. */
export function Component() {
  const { project, resource: id = '', name = '' } = useParams();
  const resources = useResources();
  const resource = resources?.get(id);
  if (!resources) {
    return <Loading />;
  }
  return resource ? <Details key={`${project} ${id} ${name}`} resources={resources} resource={resource} project={project} name={name} /> : <NotFound />;
}

/** contentID is the ID of the element with the open tab's content. */
const contentID = 'tab-content';

interface DetailsProps {
  resources: Resources;
  resource: Resource;
  project: string | undefined;
  name: string;
}

function Details({ resources, resource, project, name }: DetailsProps) {
  const { tab: current = 'details' } = useParams();
  const navigate = useNavigate();
  const title = label(resource.id, resources);
  useTitle(name, title, project);
  const snapshot = useObject<LooseObject>(resource, project, name);
  const { rights, error } = useReview(project);
  const { object } = snapshot;
  if (!object) {
    if (snapshot.error) {
      return <Failure error={snapshot.error} project={project} />;
    }
    return snapshot.loaded ? <Failure error={new ApiError(404, 'NotFound', text.failure.notFoundBody)} project={project} /> : <Loading />;
  }
  const list = project === undefined ? `/cluster/${resource.id}` : `/project/${project}/${resource.id}`;
  const path = `${list}/${encodeURIComponent(name)}`;
  const pathTo = (key: string) => (key === 'details' ? path : `${path}/${key}`);
  const tabs = tabsOf(object, rights);
  const active = tabs.find((tab) => tab.key === current);
  const unknown = error ? <Failure error={error} project={project} /> : <Loading />;
  const missing = rights === noRights ? unknown : <NotFound />;
  return (
    <>
      <PageSection>
        <Breadcrumb>
          <BreadcrumbItem render={({ className }) => <Link className={className} to={list}>{title}</Link>} />
          <BreadcrumbItem isActive>{name}</BreadcrumbItem>
        </Breadcrumb>
        <Flex justifyContent={{ default: 'justifyContentSpaceBetween' }}>
          <FlexItem>
            <Title headingLevel="h1">{name}</Title>
          </FlexItem>
          <FlexItem>
            <Actions resource={resource} project={project} object={object} />
          </FlexItem>
        </Flex>
        <Interrupted snapshots={[snapshot]} />
        {object.metadata.deletionTimestamp && <Alert isInline component="h2" variant="warning" title={text.details.deleting} />}
      </PageSection>
      <PageSection type="tabs">
        <Tabs activeKey={current} onSelect={(event, key) => {
            event.preventDefault();
            void navigate(pathTo(String(key)));
          }} usePageInsets component="nav" aria-label={name}>
          {tabs.map((tab) => (
            <Tab key={tab.key} eventKey={tab.key} title={<TabTitleText>{tab.label}</TabTitleText>} tabContentId={contentID} href={`/console${pathTo(tab.key)}`} />
          ))}
        </Tabs>
      </PageSection>
      <PageSection isFilled id={contentID} aria-label={active ? `${name}: ${active.label}` : name}>
        <Suspense fallback={<Loading />}>{active ? <active.component resource={resource} project={project} object={object} /> : missing}</Suspense>
      </PageSection>
    </>
  );
}
