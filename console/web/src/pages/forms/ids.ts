/**
 * formIDs contains the resources that have a form. It is separate from the forms, because lists
 * need the IDs before a form is loaded.
 */
export const formIDs = [
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'routes.route.openshift.io',
  'horizontalpodautoscalers.autoscaling',
  'volumesnapshots.snapshot.storage.k8s.io',
] as const;

export type FormID = (typeof formIDs)[number];

/** isForm reports whether a resource has a form. */
export function isForm(id: string): id is FormID {
  return (formIDs as readonly string[]).includes(id);
}
