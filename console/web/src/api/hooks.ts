import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { discover, pathOf, type Resource, type Resources } from './discovery';
import { get } from './http';
import { reviewRights, Rights } from './rights';
import { Joined, useStore } from './store';
import type { KubeObject, Row } from './types';
import { watchObjects, watchTable, type Snapshot } from './watch';

const noRights = new Rights([]);
const minute = 60_000;

/** useResources returns the server's resources, or nothing until they are loaded. */
export function useResources(): Resources | undefined {
  return useQuery({ queryKey: ['discovery'], queryFn: discover, staleTime: 5 * minute }).data;
}

/** clusterScope is the project whose review represents permissions in the whole cluster. */
export const clusterScope = 'default';

/**
 * useRights returns the user's permissions in a project. Until they are loaded, the user has none.
 */
export function useRights(namespace: string | undefined): Rights {
  const review = useQuery({
    queryKey: ['rights', namespace ?? clusterScope],
    queryFn: () => reviewRights(namespace ?? clusterScope),
    staleTime: minute,
  });
  return review.data ?? noRights;
}

export interface User extends KubeObject {
  fullName?: string;
  groups?: string[];
}

/** useUser returns the user of the session. */
export function useUser(): User | undefined {
  return useQuery({ queryKey: ['user'], queryFn: () => get<User>('/apis/user.openshift.io/v1/users/~'), staleTime: Infinity }).data;
}

/** Selectors limit a collection. */
export interface Selectors {
  labelSelector?: string;
  fieldSelector?: string;
}

/** useTable follows a collection with the server's columns. */
export function useTable(resource: Resource, namespace?: string, selectors: Selectors = {}): Snapshot<Row> {
  const key = JSON.stringify(selectors);
  const path = pathOf(resource, namespace);
  const watch = useMemo(() => watchTable(path, JSON.parse(key) as Record<string, string>), [path, key]);
  return useStore(watch);
}

/** useTables follows several collections of a project with the server's columns. */
export function useTables(resources: Resource[], namespace: string): Snapshot<Row>[] {
  const key = resources.map((resource) => pathOf(resource, namespace)).join(' ');
  const joined = useMemo(() => new Joined(key.split(' ').filter(Boolean).map((path) => watchTable(path))), [key]);
  return useStore(joined);
}

/** useObjects follows a collection of whole objects. */
export function useObjects<T extends KubeObject>(path: string, query: Record<string, string> = {}): Snapshot<T> {
  const key = JSON.stringify(query);
  const watch = useMemo(() => watchObjects<T>(path, JSON.parse(key) as Record<string, string>), [path, key]);
  return useStore(watch);
}

/** useObject follows one object. It is undefined until it is loaded, and after its deletion. */
export function useObject<T extends KubeObject>(resource: Resource, namespace: string | undefined, name: string): Snapshot<T> & { object?: T } {
  const snapshot = useObjects<T>(pathOf(resource, namespace), { fieldSelector: `metadata.name=${name}` });
  return { ...snapshot, object: snapshot.items[0] };
}
