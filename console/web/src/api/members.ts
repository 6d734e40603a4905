import { ApiError, create, get, put, remove } from './http';
import type { KubeObject } from './types';

/** SubjectKind is a kind of subject that can have a role. */
export type SubjectKind = 'User' | 'Group' | 'ServiceAccount';

export interface Subject {
  kind: SubjectKind;
  name: string;
  /** namespace is a service account's project. */
  namespace?: string;
  apiGroup?: string;
}

export interface RoleRef {
  apiGroup: string;
  kind: 'Role' | 'ClusterRole';
  name: string;
}

export interface RoleBinding extends KubeObject {
  roleRef: RoleRef;
  subjects?: Subject[];
}

/** Member is a subject with its roles in a project. */
export interface Member {
  subject: Subject;
  roles: RoleRef[];
}

const group = 'rbac.authorization.k8s.io';
const attempts = 5;

export const bindingsPath = (project: string) => `/apis/${group}/v1/namespaces/${encodeURIComponent(project)}/rolebindings`;

const isSameRole = (a: RoleRef, b: RoleRef) => a.kind === b.kind && a.name === b.name;

/**
 * isSameSubject reports whether two subjects are the same. If a binding omits a service account's
 * project, the service account is in the binding's project.
 */
function isSameSubject(a: Subject, b: Subject, project: string): boolean {
  const namespace = (s: Subject) => (s.kind === 'ServiceAccount' ? (s.namespace ?? project) : '');
  return a.kind === b.kind && a.name === b.name && namespace(a) === namespace(b);
}

/** membersOf returns a project's members with their roles, sorted by name. */
export function membersOf(bindings: RoleBinding[], project: string): Member[] {
  const members: Member[] = [];
  for (const binding of bindings) {
    for (const subject of binding.subjects ?? []) {
      let member = members.find((m) => isSameSubject(m.subject, subject, project));
      if (!member) {
        member = { subject: subject.kind === 'ServiceAccount' ? { ...subject, namespace: subject.namespace ?? project } : subject, roles: [] };
        members.push(member);
      }
      if (!member.roles.some((role) => isSameRole(role, binding.roleRef))) {
        member.roles.push(binding.roleRef);
      }
    }
  }
  const key = ({ subject }: Member) => `${subject.namespace ?? ''} ${subject.name}`;
  members.forEach((member) => member.roles.sort((a, b) => a.name.localeCompare(b.name)));
  return members.sort((a, b) => key(a).localeCompare(key(b)));
}

const list = async (project: string) => (await get<{ items: RoleBinding[] }>(bindingsPath(project))).items;

/**
 * again retries a change to bindings if another client has changed the bindings at the same time.
 */
async function again(change: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await change();
    } catch (error) {
      if (attempt === attempts || !(error instanceof ApiError && error.status === 409)) {
        throw error;
      }
    }
  }
}

/** addRole grants a role to a subject. It uses an existing binding of the role if possible. */
export function addRole(project: string, subject: Subject, role: RoleRef): Promise<void> {
  const entry: Subject = subject.kind === 'ServiceAccount' ? { ...subject, namespace: subject.namespace ?? project } : { kind: subject.kind, name: subject.name, apiGroup: group };
  return again(async () => {
    const bindings = await list(project);
    const ofRole = bindings.filter((binding) => isSameRole(binding.roleRef, role));
    if (ofRole.some((binding) => binding.subjects?.some((s) => isSameSubject(s, subject, project)))) {
      return;
    }
    const [binding] = ofRole;
    if (binding) {
      const path = `${bindingsPath(project)}/${encodeURIComponent(binding.metadata.name)}`;
      await put(path, { ...binding, apiVersion: `${group}/v1`, kind: 'RoleBinding', subjects: [...(binding.subjects ?? []), entry] });
      return;
    }
    const name = freeName(role.name, bindings);
    await create(bindingsPath(project), name, { apiVersion: `${group}/v1`, kind: 'RoleBinding', metadata: { name }, roleRef: role, subjects: [entry] });
  });
}

/** freeName returns a role's name, followed by a number if a binding already has this name. */
function freeName(role: string, bindings: RoleBinding[]): string {
  const names = new Set(bindings.map((binding) => binding.metadata.name));
  let name = role;
  for (let n = 2; names.has(name); n++) {
    name = `${role}-${n}`;
  }
  return name;
}

/** removeRole revokes a subject's role. It deletes bindings that have no other subject. */
export function removeRole(project: string, subject: Subject, role: RoleRef): Promise<void> {
  return again(async () => {
    for (const binding of await list(project)) {
      const subjects = binding.subjects ?? [];
      const rest = subjects.filter((s) => !isSameSubject(s, subject, project));
      if (!isSameRole(binding.roleRef, role) || rest.length === subjects.length) {
        continue;
      }
      const path = `${bindingsPath(project)}/${encodeURIComponent(binding.metadata.name)}`;
      await (rest.length === 0 ? remove(path) : put(path, { ...binding, apiVersion: `${group}/v1`, kind: 'RoleBinding', subjects: rest }));
    }
  });
}

/**
 * commonRoles contains the roles that are listed first, even for users who may not list cluster
 * roles.
 */
const commonRoles = ['admin', 'edit', 'view'];

/** otherRoles contains the other cluster roles for project members, as in OpenShift 3.11. */
const otherRoles = ['basic-user', 'system:deployer', 'system:image-builder', 'system:image-puller', 'system:image-pusher'];

const descriptionKey = 'openshift.io/description';

/** Role is a role that users can grant, with its description from the server. */
export interface Role {
  ref: RoleRef;
  description: string;
}

/**
 * rolesOf returns the roles for members: the cluster roles with the given names, and all of the
 * project's roles.
 */
export async function rolesOf(project: string, names = [...commonRoles, ...otherRoles]): Promise<Role[]> {
  const list = async (path: string): Promise<KubeObject[]> => {
    try {
      return (await get<{ items: KubeObject[] }>(path)).items;
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) {
        return [];
      }
      throw error;
    }
  };
  const [cluster, local] = await Promise.all([list(`/apis/${group}/v1/clusterroles`), list(`/apis/${group}/v1/namespaces/${encodeURIComponent(project)}/roles`)]);
  const role = (kind: RoleRef['kind']) => (object: KubeObject) => ({
    ref: { apiGroup: group, kind, name: object.metadata.name },
    description: object.metadata.annotations?.[descriptionKey] ?? '',
  });
  const offered = cluster.map(role('ClusterRole')).filter(({ ref }) => names.includes(ref.name));
  const missing = commonRoles.filter((name) => names.includes(name) && !offered.some(({ ref }) => ref.name === name));
  const common = missing.map((name) => ({ ref: { apiGroup: group, kind: 'ClusterRole' as const, name }, description: '' }));
  const rank = ({ ref }: Role) => (commonRoles.includes(ref.name) ? commonRoles.indexOf(ref.name) : commonRoles.length);
  return [...common, ...offered, ...local.map(role('Role'))].sort((a, b) => rank(a) - rank(b) || a.ref.name.localeCompare(b.ref.name));
}
