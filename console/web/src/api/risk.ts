import type { KubeObject } from './types';
import { resourceOf, type Resources } from './discovery';

/** Risk is the reason why users should examine an object before they create it. */
export type Risk = 'rights' | 'cluster' | 'project';

/** RiskyObject is an object with its risk. */
export interface RiskyObject {
  object: KubeObject;
  risk: Risk;
}

/**
 * grantingKinds are the kinds that grant permissions, or whose objects create others with the
 * user's rights.
 */
const grantingKinds = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding', 'SecurityContextConstraints', 'TemplateInstance'];

function riskOf(object: KubeObject, project: string, resources: Resources): Risk | undefined {
  if (grantingKinds.includes(object.kind)) {
    return 'rights';
  }
  if (resourceOf(resources, object.apiVersion, object.kind)?.namespaced === false) {
    return 'cluster';
  }
  return (object.metadata.namespace ?? project) === project ? undefined : 'project';
}

/**
 * riskyObjects returns the objects that do more than run an application in a project. The author of
 * a template can be another user, who lacks the rights of the user that creates its objects.
 */
export function riskyObjects(objects: KubeObject[], project: string, resources: Resources): RiskyObject[] {
  return objects.flatMap((object) => {
    const risk = riskOf(object, project, resources);
    return risk ? [{ object, risk }] : [];
  });
}
