/** Metadata is an object's metadata. */
export interface Metadata {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[];
  finalizers?: string[];
}

/** KubeObject is any object of the API. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
}

/** Condition is a condition in the status of an object. */
export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastUpdateTime?: string;
}

/** Column describes a Table's column. */
export interface Column {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
}

/** Row is a Table's row, with the metadata of the row's object. */
export interface Row {
  cells: (string | number | boolean | null)[];
  metadata: Metadata;
}

/** LooseObject is an object of any kind. Its fields must be checked before use. */
export type LooseObject = KubeObject & Record<string, unknown>;
