import type { Metadata } from './types';

type Owned = { metadata: Pick<Metadata, 'ownerReferences' | 'annotations'> };

/** configKey is an annotation on replication controllers: the deployment configuration's name. */
export const configKey = 'openshift.io/deployment-config.name';

/** controllerOf returns the reference to the controller that owns an object. */
export function controllerOf({ metadata }: Owned) {
  return metadata.ownerReferences?.find(({ controller }) => controller);
}

/** isOwned reports whether a controller owns an object. */
export function isOwned(object: Owned): boolean {
  return controllerOf(object) !== undefined;
}

/** isAlone reports whether neither a controller nor a deployment configuration owns an object. */
export function isAlone(object: Owned): boolean {
  return !isOwned(object) && !object.metadata.annotations?.[configKey];
}
