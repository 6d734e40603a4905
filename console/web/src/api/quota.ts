import { quantity } from './quantity';
import type { KubeObject } from './types';

/** QuotaStatus contains the usage and the limit of each resource, keyed by name. */
export interface QuotaStatus {
  hard?: Record<string, string>;
  used?: Record<string, string>;
}

export interface ResourceQuota extends KubeObject {
  spec?: { scopes?: string[] };
  status?: QuotaStatus;
}

/** ClusterQuota is the part of a ClusterResourceQuota that is visible in a project. */
export interface ClusterQuota extends KubeObject {
  status?: { total?: QuotaStatus; namespaces?: { namespace: string; status?: QuotaStatus }[] | null };
}

export interface LimitRange extends KubeObject {
  spec?: { limits?: ({ type: string } & Partial<Record<Limit, Record<string, string>>>)[] };
}

/** limits contains the fields of a limit range item, in the order that oc describe uses. */
export const limits = ['min', 'max', 'defaultRequest', 'default', 'maxLimitRequestRatio'] as const;
export type Limit = (typeof limits)[number];

/** Consumption is the usage of a limited resource. */
export interface Consumption {
  resource: string;
  used: string;
  hard: string;
  /** share is 1 if the limit is reached, and NaN if a quantity is invalid. */
  share: number;
}

/** consumptionOf returns the usage of each resource in a quota, sorted by name. */
export function consumptionOf(status: QuotaStatus | undefined): Consumption[] {
  return Object.entries(status?.hard ?? {})
    .map(([resource, hard]) => {
      const used = status?.used?.[resource] ?? '0';
      const limit = quantity(hard);
      return { resource, used, hard, share: limit === 0 ? 1 : quantity(used) / limit };
    })
    .sort((a, b) => a.resource.localeCompare(b.resource));
}
