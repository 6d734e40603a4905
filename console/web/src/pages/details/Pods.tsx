import { EmptyState } from '@patternfly/react-core';
import type { Resource } from '../../api/discovery';
import { useResources, useTable } from '../../api/hooks';
import { summarize } from '../../api/pods';
import { selectorOf, toSelector, type Workload } from '../../api/workloads';
import { label } from '../../app/navigation';
import { text } from '../../text/en';
import { Loading } from '../../ui/Loading';
import { PodDonut } from '../../ui/PodDonut';
import { ResourceTable } from '../../ui/ResourceTable';
import { linkTo } from '../../app/links';
import type { TabProps } from './tabs';

/** Pods is the tab with the pods of a workload. */
export default function Pods({ object, project }: TabProps) {
  const resources = useResources();
  const pods = resources?.get('pods');
  const selector = toSelector(selectorOf(object as unknown as Workload));
  if (!resources || !pods) {
    return <Loading />;
  }
  return selector === '' ? <EmptyState titleText={text.list.empty(label('pods', resources))} /> : <List pods={pods} project={project} selector={selector} title={label('pods', resources)} />;
}

function List({ pods, project, selector, title }: { pods: Resource; project: string | undefined; selector: string; title: string }) {
  const table = useTable(pods, project, selector);
  if (!table.loaded) {
    return <Loading />;
  }
  if (table.items.length === 0) {
    return <EmptyState titleText={text.list.empty(title)} />;
  }
  return (
    <>
      <PodDonut pods={summarize(table)} />
      <ResourceTable label={title} columns={table.columns} rows={table.items} withProject={false} linkOf={(row) => linkTo(pods, project, row.metadata.name)} />
    </>
  );
}
