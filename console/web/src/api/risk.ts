import type { KubeObject } from './types';
import { resourceOf, type Resource, type Resources } from './discovery';

/** Risk is the reason why users must examine an object before they create it. */
export type Risk = 'rights' | 'cluster' | 'project';

/** RiskyObject is an object with its risk. */
export interface RiskyObject {
  object: KubeObject;
  risk: Risk;
}

/**
 * grantingKinds contains the kinds that grant permissions, or whose objects create other objects
 * with the user's permissions.
 */
const grantingKinds = ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding', 'SecurityContextConstraints', 'TemplateInstance'];

function riskOf(object: KubeObject, project: string, resources: Resources, isUnchecked: (resource: Resource) => boolean): Risk | undefined {
  const resource = resourceOf(resources, object.apiVersion, object.kind);
  if (grantingKinds.includes(object.kind) && !(resource && isUnchecked(resource))) {
    return 'rights';
  }
  if (resource?.namespaced === false) {
    return 'cluster';
  }
  return (object.metadata.namespace ?? project) === project ? undefined : 'project';
}

/**
 * riskyObjects returns the objects that do more than run an application in a project. Users must
 * examine these objects, because another user, who lacks the creating user's permissions, might
 * have written the template. isUnchecked reports whether administrators trust objects of a resource
 * that grants permissions.
 */
export function riskyObjects(objects: KubeObject[], project: string, resources: Resources, isUnchecked: (resource: Resource) => boolean = () => false): RiskyObject[] {
  return objects.flatMap((object) => {
    const risk = riskOf(object, project, resources, isUnchecked);
    return risk ? [{ object, risk }] : [];
  });
}
