import { Title } from '@patternfly/react-core';
import { lazy, Suspense } from 'react';
import { pathOf, type Resources } from '../../api/discovery';
import { useObjects } from '../../api/hooks';
import { persistent } from '../../app/load';
import { text } from '../../text/en';
import { Loading } from '../../ui/Loading';
import type { Build } from './BuildTable';

/** BuildTable is loaded for projects with builds, because tables are a tenth of the page's size. */
const BuildTable = lazy(persistent(() => import('./BuildTable')));

const buildsID = 'builds.build.openshift.io';
const maxBuilds = 5;

/** Builds lists a project's latest builds, if there are any. */
export function Builds({ project, resources }: { project: string; resources: Resources }) {
  const resource = resources.get(buildsID);
  return resource ? <List path={pathOf(resource, project)} project={project} /> : null;
}

function List({ path, project }: { path: string; project: string }) {
  const { items } = useObjects<Build>(path);
  const latest = [...items].sort((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp)).slice(0, maxBuilds);
  if (latest.length === 0) {
    return null;
  }
  return (
    <>
      <Title headingLevel="h2">{text.overview.builds}</Title>
      <Suspense fallback={<Loading />}>
        <BuildTable project={project} builds={latest} />
      </Suspense>
    </>
  );
}
