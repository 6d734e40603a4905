import { Alert, AlertGroup, Button } from '@patternfly/react-core';
import { useMemo, useState } from 'react';
import { Link } from 'react-router';
import { readable, useCollections } from '../../api/collections';
import { pathOf, type Resource, type Resources } from '../../api/discovery';
import { newestFirst } from '../../api/events';
import { useObjects, useRights, useTables } from '../../api/hooks';
import type { PodSummary } from '../../api/pods';
import type { LooseObject } from '../../api/types';
import { ids, type Warning } from '../../api/warnings/state';
import { keyOf, warningsOf } from '../../api/warnings/warnings';
import { linkTo } from '../../app/links';
import { useWarningEvents } from '../../app/notifications/notifications';
import { text } from '../../text/en';
import { warnings as t } from '../../text/warnings';

/**
 * maxUrgent is the maximum number of warnings before the user expands the list, and maxShown is the
 * maximum number afterwards.
 */
const maxUrgent = 5;
const maxShown = 100;

const variants = { error: 'danger', warning: 'warning', info: 'info' } as const;

interface WarningsProps {
  project: string;
  resources: Resources;
  /** pods contains the project's pods, or is undefined until they are loaded. */
  pods: PodSummary[] | undefined;
}

/** useWarnings watches a project's objects, and returns the problems that oc status reports. */
function useWarnings({ project, resources, pods }: WarningsProps): Warning[] {
  const rights = useRights(project);
  const offered = useMemo(() => readable(Object.values(ids), resources, rights), [resources, rights]);
  const { snapshots, loaded } = useCollections(offered, project);
  const [secrets] = useTables(readable(['secrets'], resources, rights), project);
  const { items: waiting } = useObjects<LooseObject>(pathOf(resources.get('pods') as Resource, project), { fieldSelector: 'status.phase=Pending' });
  const failures = useWarningEvents(project); // shared with the notifications
  return useMemo(() => {
    if (offered.length === 0 || !loaded || !pods) {
      return []; // in an incomplete collection, an object only seems to be missing
    }
    const of = (id: string) => {
      const snapshot = snapshots[offered.findIndex((resource) => resource.id === id)];
      return snapshot?.loaded ? snapshot.items : undefined;
    };
    const names = secrets?.loaded ? new Set(secrets.items.map(({ metadata }) => metadata.name)) : undefined;
    const because = (...reasons: string[]) => newestFirst(failures.filter(({ reason }) => reasons.includes(reason ?? '')));
    return warningsOf({ project, of, pods, waiting, secrets: names, refusals: because('FailedCreate'), mounts: because('FailedMount', 'FailedAttachVolume') });
  }, [project, offered, loaded, snapshots, pods, secrets, waiting, failures]);
}

/** Warnings lists objects that do not work, with remedies and links to their pages. */
export default function Warnings(props: WarningsProps) {
  const warnings = useWarnings(props);
  const [isExpanded, setExpanded] = useState(false);
  const urgent = warnings.filter(({ level }) => level !== 'info').slice(0, maxUrgent);
  const shown = isExpanded ? warnings.slice(0, maxShown) : urgent;
  return (
    <>
      <AlertGroup aria-label={text.overview.warnings}>
        {shown.map((warning) => (
          <Alert
            key={keyOf(warning)}
            isInline
            component="h2"
            variant={variants[warning.level]}
            title={`${warning.name}: ${warning.problem}`}
            actionLinks={<Link to={[linkTo(props.resources.get(warning.resource) as Resource, props.project, warning.name), warning.tab].filter(Boolean).join('/')}>{warning.name}</Link>}
          >
            {warning.remedy}
          </Alert>
        ))}
      </AlertGroup>
      {warnings.length > urgent.length && (
        <Button variant="link" isInline aria-expanded={isExpanded} onClick={() => setExpanded(!isExpanded)}>
          {isExpanded ? t.showFewer : t.showAll(warnings.length)}
        </Button>
      )}
    </>
  );
}
