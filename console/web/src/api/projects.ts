import { useQuery } from '@tanstack/react-query';
import { useObjects } from './hooks';
import { ApiError, create, get, merge, remove } from './http';
import type { KubeObject } from './types';
import type { Snapshot } from './watch';

export interface Project extends KubeObject {
  status?: { phase?: string };
}

const projectsPath = '/apis/project.openshift.io/v1/projects';
const requestsPath = '/apis/project.openshift.io/v1/projectrequests';

const displayNameKey = 'openshift.io/display-name';
const descriptionKey = 'openshift.io/description';
const requesterKey = 'openshift.io/requester';

export const displayName = (project: Project) => project.metadata.annotations?.[displayNameKey] ?? '';
export const description = (project: Project) => project.metadata.annotations?.[descriptionKey] ?? '';
export const requester = (project: Project) => project.metadata.annotations?.[requesterKey] ?? '';

/** useProjects watches the projects that the user may see, sorted by name. */
export function useProjects(): Snapshot<Project> {
  const snapshot = useObjects<Project>(projectsPath);
  return { ...snapshot, items: [...snapshot.items].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)) };
}

/** Permission specifies whether the user may request a project. */
export interface Permission {
  mayRequest: boolean;
  /** refusal is the administrator's message for users who may not request a project. */
  refusal?: string;
}

async function readPermission(): Promise<Permission> {
  try {
    await get(requestsPath);
    return { mayRequest: true };
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) {
      return { mayRequest: false, refusal: error.message };
    }
    throw error;
  }
}

/** usePermission returns the user's Permission. Until it is loaded, mayRequest is false. */
export function usePermission(): Permission {
  return useQuery({ queryKey: ['projectrequests'], queryFn: readPermission, staleTime: 60_000 }).data ?? { mayRequest: false };
}

/** requestProject creates a project from the server's template. */
export async function requestProject(name: string, title: string, about: string): Promise<void> {
  const request = { apiVersion: 'project.openshift.io/v1', kind: 'ProjectRequest', metadata: { name }, displayName: title, description: about };
  await create(requestsPath, name, request, projectsPath);
}

/** describeProject changes a project's display name and description. */
export function describeProject(name: string, title: string, about: string): Promise<unknown> {
  return merge(`${projectsPath}/${encodeURIComponent(name)}`, { metadata: { annotations: { [displayNameKey]: title, [descriptionKey]: about } } });
}

export function deleteProject(name: string): Promise<void> {
  return remove(`${projectsPath}/${encodeURIComponent(name)}`);
}

/** validName reports whether a name is valid for a project. */
export function validName(name: string): boolean {
  return name.length >= 2 && name.length <= 63 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name);
}
