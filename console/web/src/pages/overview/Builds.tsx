import { Label, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { Link } from 'react-router';
import { pathOf, type Resources } from '../../api/discovery';
import { useObjects } from '../../api/hooks';
import { own } from '../../api/own';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';

interface Build extends KubeObject {
  status?: { phase?: string; message?: string; config?: { name?: string } };
}

const buildsID = 'builds.build.openshift.io';
const maxBuilds = 5;

const colors: Record<string, 'green' | 'red' | 'blue' | 'grey'> = { Complete: 'green', Failed: 'red', Error: 'red', Running: 'blue', Pending: 'blue', New: 'blue' };

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
      <Table aria-label={text.overview.builds} variant="compact">
        <Thead>
          <Tr>
            <Th>{text.name}</Th>
            <Th>{text.details.status}</Th>
            <Th>{text.details.message}</Th>
            <Th>{text.age}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {latest.map((build) => (
            <Tr key={build.metadata.uid}>
              <Td dataLabel={text.name}>
                <Link to={`/project/${project}/${buildsID}/${build.metadata.name}`}>{build.metadata.name}</Link>
              </Td>
              <Td dataLabel={text.details.status}>
                <Label color={own(colors, build.status?.phase ?? '') ?? 'grey'}>{build.status?.phase ?? '-'}</Label>
              </Td>
              <Td dataLabel={text.details.message}>{build.status?.message ?? '-'}</Td>
              <Td dataLabel={text.age}>
                <Age of={build.metadata.creationTimestamp} />
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}
