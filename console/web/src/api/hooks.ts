import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { discover, pathOf, type Resource, type Resources } from './discovery';
import { get } from './http';
import { reviewRights, Rights } from './rights';
import { Joined, useStore } from './store';
import type { KubeObject, Row } from './types';
import { watchObjects, watchTable, type Snapshot } from './watch';

/** noRights contains no permissions. useRights returns it until the permissions are loaded. */
export const noRights = new Rights([]);
const minute = 60_000;

/** useResources returns the server's resources, or undefined until they are loaded. */
export function useResources(): Resources | undefined {
  return useQuery({ queryKey: ['discovery'], queryFn: discover, staleTime: 5 * minute }).data;
}

/** clusterScope is the project in which permissions for the whole cluster are reviewed. */
export const clusterScope = 'default';

/** Review is the state of a request for the user's permissions. */
export interface Review {
  /** rights is noRights until the permissions are loaded. */
  rights: Rights;
  /** error is the reason why the permissions cannot be loaded. */
  error?: Error;
}

/** useReview reviews the user's permissions in a project. */
export function useReview(namespace: string | undefined): Review {
  const review = useQuery({
    queryKey: ['rights', namespace ?? clusterScope],
    queryFn: () => reviewRights(namespace ?? clusterScope),
    staleTime: minute,
  });
  return review.data ? { rights: review.data } : { rights: noRights, error: review.error ?? undefined };
}

/**
 * useRights returns the user's permissions in a project. Until they are loaded, it returns
 * noRights.
 */
export function useRights(namespace: string | undefined): Rights {
  return useReview(namespace).rights;
}

export interface User extends KubeObject {
  fullName?: string;
  groups?: string[];
}

/** readUser requests the session's user. */
export const readUser = () => get<User>('/apis/user.openshift.io/v1/users/~');

/** useUser returns the user for whom the page was opened. */
export function useUser(): User | undefined {
  return useQuery({ queryKey: ['user'], queryFn: readUser, staleTime: Infinity }).data;
}

/** Selectors restricts the objects of a collection. */
export interface Selectors {
  labelSelector?: string;
  fieldSelector?: string;
}

/** useTable watches a collection, with the columns that the server chooses. */
export function useTable(resource: Resource, namespace?: string, selectors: Selectors = {}): Snapshot<Row> {
  const key = JSON.stringify(selectors);
  const path = pathOf(resource, namespace);
  const watch = useMemo(() => watchTable(path, JSON.parse(key) as Record<string, string>), [path, key]);
  return useStore(watch);
}

/**
 * useTables watches several of a project's collections, with the columns that the server chooses.
 */
export function useTables(resources: Resource[], namespace: string): Snapshot<Row>[] {
  const key = resources.map((resource) => pathOf(resource, namespace)).join(' ');
  const joined = useMemo(() => new Joined(key.split(' ').filter(Boolean).map((path) => watchTable(path))), [key]);
  return useStore(joined);
}

/** useObjects watches a collection of complete objects. */
export function useObjects<T extends KubeObject>(path: string, query: Record<string, string> = {}): Snapshot<T> {
  const key = JSON.stringify(query);
  const watch = useMemo(() => watchObjects<T>(path, JSON.parse(key) as Record<string, string>), [path, key]);
  return useStore(watch);
}

/**
 * useObject watches one object. The result is undefined until the object is loaded, and after its
 * deletion.
 */
export function useObject<T extends KubeObject>(resource: Resource, namespace: string | undefined, name: string): Snapshot<T> & { object?: T } {
  const snapshot = useObjects<T>(pathOf(resource, namespace), { fieldSelector: `metadata.name=${name}` });
  return { ...snapshot, object: snapshot.items[0] };
}
