import type { KubeObject } from './types';

/** Binding is a RoleBinding or ClusterRoleBinding. */
export interface Binding extends KubeObject {
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace?: string }[] | null;
}

/** Grant is a role that a user or group has. */
export interface Grant {
  key: string;
  role: string;
  /** project is the name of a project, or empty for the whole cluster. */
  project: string;
  /** group is the name of the group that has the role, or empty. */
  group: string;
}

/** grantsOf returns the roles of a user and the user's groups, or of a group if user is empty. */
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

/** virtualGroups contains the groups of every user who has logged in. */
export const virtualGroups = ['system:authenticated', 'system:authenticated:oauth'];
