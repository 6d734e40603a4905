import { EmptyState } from '@patternfly/react-core';
import type { Resource } from '../../api/discovery';
import { useResources, useTable, type Selectors } from '../../api/hooks';
import { summarize } from '../../api/pods';
import { selectorOf, toSelector, type Workload } from '../../api/workloads';
import { label } from '../../app/navigation';
import { text } from '../../text/en';
import { Loading } from '../../ui/Loading';
import { PodDonut } from '../../ui/PodDonut';
import { ResourceTable } from '../../ui/ResourceTable';
import type { TabProps } from './tabs';

/** Pods is the tab with a workload's or node's pods. */
export default function Pods({ object, project }: TabProps) {
  const resources = useResources();
  const pods = resources?.get('pods');
  if (!resources || !pods) {
    return <Loading />;
  }
  const title = label('pods', resources);
  if (object.kind === 'Node') {
    return <List pods={pods} project={undefined} selectors={{ fieldSelector: `spec.nodeName=${object.metadata.name}` }} title={title} />;
  }
  const labelSelector = toSelector(selectorOf(object as unknown as Workload));
  return labelSelector === '' ? <EmptyState headingLevel="h2" titleText={text.list.empty(title)} /> : <List pods={pods} project={project} selectors={{ labelSelector }} title={title} />;
}

function List({ pods, project, selectors, title }: { pods: Resource; project: string | undefined; selectors: Selectors; title: string }) {
  const table = useTable(pods, project, selectors);
  if (!table.loaded) {
    return <Loading />;
  }
  if (table.items.length === 0) {
    return <EmptyState headingLevel="h2" titleText={text.list.empty(title)} />;
  }
  return (
    <>
      <PodDonut pods={summarize(table)} />
      <ResourceTable label={title} columns={table.columns} rows={table.items} withProject={project === undefined} resource={pods} />
    </>
  );
}
