import { text } from '../../text/en';

/** sourceKinds contains the resources whose objects have a log, keyed by resource ID. */
export const sourceKinds = {
  pods: text.monitoring.pods,
  'builds.build.openshift.io': text.monitoring.builds,
  'deploymentconfigs.apps.openshift.io': text.monitoring.deployments,
} as const;

/** isSourceKind reports whether a resource's objects have a log. */
export function isSourceKind(id: string): id is keyof typeof sourceKinds {
  return id in sourceKinds;
}
