import type { KubeObject } from './types';

/** Component is the state of a component on a host, as reported by its supervisor. */
export interface Component {
  process: string;
  name: string;
  state: string;
  since?: string;
  note?: string;
}

/** Certificate is a host's certificate. end is the time when it expires, in RFC 3339 format. */
export interface Certificate {
  name: string;
  end: string;
}

/** Report is the content of the Node annotation in which a host publishes its state. */
export interface Report {
  version: string;
  components: Component[];
  certificates: Certificate[];
}

/** Host is a node with its host's report. */
export interface Host {
  name: string;
  uid: string;
  ready: boolean;
  reason: string;
  report?: Report;
}

/** Cluster contains the state of etcd and of the masters, as reported by the masters. */
export interface Cluster {
  etcd: { name: string; role: string; leader: boolean; behind: number; size: number; version: string; problem?: string }[];
  leaders: { group: string; master: string }[];
}

/** clusterPath is the path at which the API server serves the Cluster. */
export const clusterPath = '/slipway/cluster';

const reportKey = 'slipway.openshift.io/host-report';

interface NodeObject extends KubeObject {
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}

/** hostOf parses a Node. It ignores an invalid report. */
export function hostOf(node: NodeObject): Host {
  const { name, uid, annotations } = node.metadata;
  const condition = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const ready = condition?.status === 'True';
  return { name, uid, ready, reason: ready ? '' : (condition?.message ?? ''), report: reportOf(annotations?.[reportKey]) };
}

function reportOf(content: string | undefined): Report | undefined {
  try {
    const report = JSON.parse(content ?? '') as Partial<Report> | null;
    return report === null ? undefined : { version: String(report.version ?? ''), components: list(report.components), certificates: list(report.certificates) };
  } catch {
    return undefined;
  }
}

function list<T>(value: T[] | undefined): T[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'object' && item !== null) : [];
}

/**
 * isWell reports whether a component works as intended. This includes standby, because some
 * components are active on only one of several masters.
 */
export function isWell({ state, note }: Component): boolean {
  return (state === 'ready' || state === 'standby') && !note;
}

/**
 * soon is the remaining validity, in milliseconds, at which the console starts to show a warning.
 * Slipway normally renews certificates earlier.
 */
const soon = 14 * 24 * 3600 * 1000;

/** validity describes whether a certificate is valid, expires soon, or has expired. */
export function validity({ end }: Certificate, now: number): 'valid' | 'soon' | 'expired' {
  const left = Date.parse(end) - now;
  return left <= 0 ? 'expired' : left < soon ? 'soon' : 'valid';
}
