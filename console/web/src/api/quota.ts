import { quantity } from './quantity';
import type { KubeObject } from './types';

/** QuotaStatus is the consumption of resources, by their names. */
export interface QuotaStatus {
  hard?: Record<string, string>;
  used?: Record<string, string>;
}

export interface ResourceQuota extends KubeObject {
  spec?: { scopes?: string[] };
  status?: QuotaStatus;
}

/** ClusterQuota is the part of a quota over several projects that is visible in a project. */
export interface ClusterQuota extends KubeObject {
  status?: { total?: QuotaStatus; namespaces?: { namespace: string; status?: QuotaStatus }[] | null };
}

export interface LimitRange extends KubeObject {
  spec?: { limits?: ({ type: string } & Partial<Record<Limit, Record<string, string>>>)[] };
}

/** limits are the fields of an item of a limit range, in the order of oc describe. */
export const limits = ['min', 'max', 'defaultRequest', 'default', 'maxLimitRequestRatio'] as const;
export type Limit = (typeof limits)[number];

/** Consumption is the used part of a limit. */
export interface Consumption {
  resource: string;
  used: string;
  hard: string;
  /** share is 1 if the limit is reached. It is NaN if a quantity is not valid. */
  share: number;
}

/** consumptionOf returns the consumption of each resource of a quota, by name. */
export function consumptionOf(status: QuotaStatus | undefined): Consumption[] {
  return Object.entries(status?.hard ?? {})
    .map(([resource, hard]) => {
      const used = status?.used?.[resource] ?? '0';
      const limit = quantity(hard);
      return { resource, used, hard, share: limit === 0 ? 1 : quantity(used) / limit };
    })
    .sort((a, b) => a.resource.localeCompare(b.resource));
}
