import { useMemo, useState } from 'react';
import { pathOf } from '../../api/discovery';
import { LogView } from '../../ui/LogView';
import { ContainerSelect } from '../../ui/ContainerSelect';
import { containersOf, isRunning } from './containers';
import type { TabProps } from './tabs';

/** tailLines is how much of a long log is read at first. */
const tailLines = 5000;

/** Logs is the tab with the log of a container of a pod, or of a build. */
export default function Logs({ resource, project, object }: TabProps) {
  const containers = containersOf(object);
  const [container, setContainer] = useState(containers[0]);
  const [previous, setPrevious] = useState(false);
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
    return `${pathOf(resource, project, name)}/log?${query}`;
  }, [resource, project, name, container, previous]);
  // A container that starts after the page has opened has a log then.
  const key = `${path} ${started}`;
  return (
    <LogView
      key={key}
      path={path}
      name={container === undefined ? name : `${name}-${container}`}
      previous={object.kind === 'Pod' ? previous : undefined}
      onPrevious={setPrevious}
      tools={containers.length > 1 && <ContainerSelect containers={containers} value={container} onChange={setContainer} />}
    />
  );
}
