import { Label, List, ListItem, Title } from '@patternfly/react-core';
import { Link } from 'react-router';
import { byCreation } from '../../api/creation';
import { pathOf, type Resources } from '../../api/discovery';
import { useObjects } from '../../api/hooks';
import { own } from '../../api/own';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';

export interface Build extends KubeObject {
  status?: { phase?: string; message?: string };
}

const buildsID = 'builds.build.openshift.io';
const maxBuilds = 5;

const colors: Record<string, 'green' | 'red' | 'blue' | 'grey'> = { Complete: 'green', Failed: 'red', Error: 'red', Running: 'blue', Pending: 'blue', New: 'blue' };

/** newestBuilds returns at most max builds, newest first. */
export function newestBuilds(builds: Build[], max: number): Build[] {
  return [...builds].sort(byCreation).slice(0, max);
}

/** BuildPhase is the label with a build's phase. */
export function BuildPhase({ phase = '' }: { phase?: string | undefined }) {
  return <Label color={own(colors, phase) ?? 'grey'}>{phase || '-'}</Label>;
}

/** Builds lists a project's latest builds, if there are any. */
export function Builds({ project, resources }: { project: string; resources: Resources }) {
  const resource = resources.get(buildsID);
  return resource ? <Latest path={pathOf(resource, project)} project={project} /> : null;
}

/**
 * Latest shows a list instead of a table, because the styles and scripts of tables are a tenth of
 * the page's size.
 */
function Latest({ path, project }: { path: string; project: string }) {
  const { items } = useObjects<Build>(path);
  const latest = newestBuilds(items, maxBuilds);
  if (latest.length === 0) {
    return null;
  }
  return (
    <>
      <Title headingLevel="h2">{text.overview.builds}</Title>
      <List isPlain isBordered aria-label={text.overview.builds}>
        {latest.map(({ metadata, status }) => (
          <ListItem key={metadata.uid}>
            <div className="console-row">
              <Link to={`/project/${project}/${buildsID}/${metadata.name}`}>{metadata.name}</Link>
              <BuildPhase phase={status?.phase} />
              <span className="console-grow">{status?.message}</span>
              <Age of={metadata.creationTimestamp} />
            </div>
          </ListItem>
        ))}
      </List>
    </>
  );
}
