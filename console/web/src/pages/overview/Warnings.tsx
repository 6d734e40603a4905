import { Alert, AlertGroup } from '@patternfly/react-core';
import { Link } from 'react-router';
import type { PodSummary } from '../../api/pods';
import { admission, type Route } from '../../api/routes';
import { text } from '../../text/en';

const maxWarnings = 5;

/** Warnings lists objects that do not work, with links to their pages. */
export function Warnings({ project, pods, routes }: { project: string; pods: PodSummary[]; routes: Route[] }) {
  const failed = pods
    .filter((pod) => pod.state === 'failed')
    .map((pod) => ({ key: pod.uid, path: `/project/${project}/pods/${pod.name}`, name: pod.name, reason: pod.status, remedy: remedy(pod.status) }));
  const refused = routes
    .filter((route) => !admission(route).admitted && admission(route).reason !== '')
    .map((route) => ({
      key: route.metadata.uid,
      path: `/project/${project}/routes.route.openshift.io/${route.metadata.name}`,
      name: route.metadata.name,
      reason: admission(route).reason,
      remedy: '',
    }));
  const all = [...failed, ...refused].slice(0, maxWarnings);
  return (
    <AlertGroup aria-label={text.overview.warnings}>
      {all.map((warning) => (
        <Alert key={warning.key} isInline component="h2" variant="warning" title={`${warning.name}: ${warning.reason}`} actionLinks={<Link to={warning.path}>{warning.name}</Link>}>
          {warning.remedy}
        </Alert>
      ))}
    </AlertGroup>
  );
}

/** remedy returns the usual remedy for a pod's status. */
function remedy(status: string): string {
  const entry = Object.entries(text.remedies).find(([part]) => status.includes(part));
  return entry?.[1] ?? '';
}
