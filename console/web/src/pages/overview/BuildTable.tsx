import { Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { Link } from 'react-router';
import { own } from '../../api/own';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';

export interface Build extends KubeObject {
  status?: { phase?: string; message?: string; config?: { name?: string } };
}

const colors: Record<string, 'green' | 'red' | 'blue' | 'grey'> = { Complete: 'green', Failed: 'red', Error: 'red', Running: 'blue', Pending: 'blue', New: 'blue' };

/** BuildTable shows builds with their phases. */
export default function BuildTable({ project, builds }: { project: string; builds: Build[] }) {
  return (
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
        {builds.map((build) => (
          <Tr key={build.metadata.uid}>
            <Td dataLabel={text.name}>
              <Link to={`/project/${project}/builds.build.openshift.io/${build.metadata.name}`}>{build.metadata.name}</Link>
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
  );
}
