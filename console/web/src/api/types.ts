/** Metadata is the metadata of an object. */
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

/** Condition is a condition in the status of many kinds. */
export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastUpdateTime?: string;
}

/** Column describes a column of a Table. */
export interface Column {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
}

/** Row is a row of a Table, with the metadata of its object. */
export interface Row {
  cells: (string | number | boolean | null)[];
  metadata: Metadata;
}

/** LooseObject is an object whose fields must be checked, because any kind can have any field. */
export type LooseObject = KubeObject & Record<string, unknown>;
