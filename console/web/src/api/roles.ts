import type { KubeObject } from './types';

/** Binding is a RoleBinding or ClusterRoleBinding. */
export interface Binding extends KubeObject {
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[] | null;
}

/** Grant is a role of a user or group. */
export interface Grant {
  key: string;
  role: string;
  /** project is empty for the whole cluster. */
  project: string;
  /** group is the group that has the role, or empty. */
  group: string;
}

/** grantsOf returns the roles of a user with groups, or of a group if user is empty. */
export function grantsOf(bindings: Binding[], user: string, groups: string[]): Grant[] {
  return bindings.flatMap(({ metadata, roleRef, subjects }) =>
    (subjects ?? [])
      .filter(({ kind, name }) => (kind === 'User' && user !== '' && name === user) || (kind === 'Group' && groups.includes(name)))
      .map(({ kind, name }) => ({
        key: `${metadata.uid} ${kind} ${name}`,
        role: roleRef?.name ?? '',
        project: metadata.namespace ?? '',
        group: kind === 'Group' ? name : '',
      })),
  );
}

/** virtualGroups are the groups of each user who logged in. */
export const virtualGroups = ['system:authenticated', 'system:authenticated:oauth'];
