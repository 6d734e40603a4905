import { text } from '../../text/en';

/** sourceKinds are the resources that have a log, by their ids. */
export const sourceKinds = {
  pods: text.monitoring.pods,
  'builds.build.openshift.io': text.monitoring.builds,
  'deploymentconfigs.apps.openshift.io': text.monitoring.deployments,
} as const;

/** isSourceKind reports whether objects of a resource have a log. */
export function isSourceKind(id: string): id is keyof typeof sourceKinds {
  return id in sourceKinds;
}
