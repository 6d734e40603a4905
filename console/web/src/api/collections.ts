import { useMemo } from 'react';
import { pathOf, type Resource, type Resources } from './discovery';
import type { Rights } from './rights';
import { Joined, useStore } from './store';
import type { LooseObject } from './types';
import { watchObjects, type Snapshot } from './watch';

/** readable returns the given resources that the server serves and that the user may list. */
export function readable(ids: string[], resources: Resources, rights: Rights): Resource[] {
  return ids.flatMap((id) => {
    const resource = resources.get(id);
    return resource?.verbs.includes('watch') && rights.may('list', resource.group, resource.name) ? [resource] : [];
  });
}

/** Collections contains the objects of several resources, keyed by resource ID. */
export interface Collections {
  of: (id: string) => LooseObject[];
  loaded: boolean;
  snapshots: Snapshot<LooseObject>[];
}

/** useCollections watches the objects of several resources, in one project or in all projects. */
export function useCollections(resources: Resource[], namespace?: string): Collections {
  const key = resources.map((resource) => pathOf(resource, namespace)).join(' ');
  const joined = useMemo(() => new Joined(key.split(' ').filter(Boolean).map((path) => watchObjects<LooseObject>(path))), [key]);
  const snapshots = useStore(joined);
  return useMemo(
    () => ({
      of: (id: string) => snapshots[resources.findIndex((resource) => resource.id === id)]?.items ?? [],
      loaded: snapshots.every((snapshot) => snapshot.loaded || snapshot.error !== undefined),
      snapshots,
    }),
    [snapshots, key],
  );
}
