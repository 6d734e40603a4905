import { Alert } from '@patternfly/react-core';
import { isVolumeFailure, type VolumeEvent } from '../../api/drivers';
import { newestFirst } from '../../api/events';
import { useObjects } from '../../api/hooks';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';

/** VolumeFailures shows why a waiting pod has not mounted its volumes. */
export function VolumeFailures({ pod }: { pod: LooseObject }) {
  const path = `/api/v1/namespaces/${encodeURIComponent(pod.metadata.namespace ?? '')}/events`;
  const { items } = useObjects<VolumeEvent>(path, { fieldSelector: `involvedObject.uid=${pod.metadata.uid}` });
  const failures = newestFirst(items.filter(isVolumeFailure));
  if (failures.length === 0) {
    return <p>{text.drivers.noneOfPod}</p>;
  }
  return failures.map((event) => (
    <Alert key={event.metadata.uid} isInline component="h2" variant="danger" title={text.drivers.titles[event.reason ?? ''] ?? event.reason}>
      {event.message}
    </Alert>
  ));
}
