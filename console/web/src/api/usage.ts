import { useQuery } from '@tanstack/react-query';
import { get } from './http';
import { quantity } from './quantity';
import { useResources } from './hooks';

/** Amounts contains amounts of resources, in cores and bytes. */
export interface Amounts {
  cpu: number;
  memory: number;
}

interface PodMetrics {
  containers?: { name: string; usage?: Record<string, string> }[];
}

interface NodeMetrics {
  usage?: Record<string, string>;
}

/**
 * interval is the time between two requests to the metrics server. The page sends requests
 * repeatedly, because clients cannot watch metrics.
 */
const interval = 15_000;

/** amountsOf adds up lists of resources. */
export function amountsOf(lists: (Record<string, string> | undefined)[]): Amounts {
  const sum = (name: string) => lists.reduce((total, list) => total + (quantity(list?.[name]) || 0), 0);
  return { cpu: sum('cpu'), memory: sum('memory') };
}

/**
 * useUsage returns the resources that a pod or a node uses. It returns undefined if the cluster has
 * no metrics.
 */
export function useUsage(kind: 'nodes' | 'pods', namespace: string | undefined, name: string): Amounts | undefined {
  const served = useResources()?.has(`${kind}.metrics.k8s.io`) === true;
  const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const path = `/apis/metrics.k8s.io/v1beta1${scope}/${kind}/${encodeURIComponent(name)}`;
  const { data } = useQuery({ queryKey: [path], queryFn: () => get<PodMetrics & NodeMetrics>(path), enabled: served, refetchInterval: interval, retry: false });
  return data && amountsOf(data.containers ? data.containers.map(({ usage }) => usage) : [data.usage]);
}
