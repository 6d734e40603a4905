import { Checkbox, EmptyState, FormSelect, FormSelectOption, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useId, useMemo, useState } from 'react';
import { pathOf, type Resource } from '../../api/discovery';
import { useObjects, useResources } from '../../api/hooks';
import type { LooseObject } from '../../api/types';
import { selectorOf, toSelector, type Workload } from '../../api/workloads';
import { logs as t } from '../../text/logs';
import { ContainerSelect } from '../../ui/ContainerSelect';
import { Loading } from '../../ui/Loading';
import { LogView } from '../../ui/LogView';
import { containersOf, isRunning } from './containers';
import type { TabProps } from './tabs';

/** tailLines is the number of lines at the end of a long log that are read first. */
const tailLines = 5000;

/** Logs is the tab with the log of a pod's container, of a build, or of a workload's pods. */
export default function Logs(props: TabProps) {
  const pods = useResources()?.get('pods');
  if (['Pod', 'Build'].includes(props.object.kind)) {
    return <Log {...props} />;
  }
  const labelSelector = toSelector(selectorOf(props.object as unknown as Workload));
  if (!pods) {
    return <Loading />;
  }
  return labelSelector === '' ? <EmptyState headingLevel="h2" titleText={t.none} /> : <LogOfPod pods={pods} project={props.project} labelSelector={labelSelector} />;
}

function LogOfPod({ pods, project, labelSelector }: { pods: Resource; project: string | undefined; labelSelector: string }) {
  const { items, loaded } = useObjects<LooseObject>(pathOf(pods, project), { labelSelector });
  const [chosen, setChosen] = useState<string>();
  if (!loaded) {
    return <Loading />;
  }
  const sorted = [...items].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  const pod = sorted.find(({ metadata }) => metadata.name === chosen) ?? sorted[0];
  if (!pod) {
    return <EmptyState headingLevel="h2" titleText={t.none} />;
  }
  if (pod.metadata.name !== chosen) {
    setChosen(pod.metadata.name); // keep the log when another pod starts
  }
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <FormSelect aria-label={t.pod} value={pod.metadata.name} onChange={(_, name) => setChosen(name)}>
              {sorted.map(({ metadata: { name, uid } }) => (
                <FormSelectOption key={uid} value={name} label={name} />
              ))}
            </FormSelect>
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <Log key={pod.metadata.uid} resource={pods} project={project} object={pod} />
    </>
  );
}

/** Log shows the log of a pod or a build as it grows. */
function Log({ resource, project, object }: TabProps) {
  const id = useId();
  const containers = containersOf(object);
  const [container, setContainer] = useState(containers[0]);
  const [previous, setPrevious] = useState(false);
  const [since, setSince] = useState('');
  const [withTimes, setWithTimes] = useState(false);
  const name = object.metadata.name;
  const started = object.kind === 'Pod' ? isRunning(object, container) : (object.status as { phase?: string } | undefined)?.phase !== 'New';
  const path = useMemo(() => {
    const query = new URLSearchParams({ follow: String(!previous), tailLines: String(tailLines) });
    if (container !== undefined) {
      query.set('container', container);
    }
    if (previous) {
      query.set('previous', 'true');
    }
    if (since !== '') {
      query.set('sinceSeconds', since);
    }
    if (withTimes) {
      query.set('timestamps', 'true');
    }
    return `${pathOf(resource, project, name)}/log?${query}`;
  }, [resource, project, name, container, previous, since, withTimes]);
  // If the container starts after the page was opened, the new key makes the page read the log
  // again. Before the start, the log did not exist.
  const key = `${path} ${started}`;
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          {containers.length > 1 && (
            <ToolbarItem>
              <ContainerSelect containers={containers} value={container} onChange={setContainer} />
            </ToolbarItem>
          )}
          <ToolbarItem>
            <FormSelect aria-label={t.since} value={since} onChange={(_, seconds) => setSince(seconds)}>
              {['', '300', '3600', '86400'].map((seconds) => (
                <FormSelectOption key={seconds} value={seconds} label={`${t.since} ${t.periods[seconds]}`} />
              ))}
            </FormSelect>
          </ToolbarItem>
          <ToolbarItem alignSelf="center">
            <Checkbox id={`${id}-times`} label={t.times} isChecked={withTimes} onChange={(_, checked) => setWithTimes(checked)} />
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <LogView
        key={key}
        path={path}
        name={container === undefined ? name : `${name}-${container}`}
        previous={object.kind === 'Pod' ? previous : undefined}
        onPrevious={setPrevious}
      />
    </>
  );
}
