import type { Condition, KubeObject } from './types';

export interface Route extends KubeObject {
  spec: { host?: string; path?: string; to?: { name?: string; weight?: number }; alternateBackends?: { name: string; weight?: number }[]; port?: object; tls?: { termination?: string } };
  status?: { ingress?: { host?: string; routerName?: string; routerCanonicalHostname?: string; conditions?: Condition[] }[] };
}

/** addressOf returns a route's URL, or undefined if the route's host is invalid. */
export function addressOf(route: Route): string | undefined {
  const host = route.spec.host ?? '';
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host)) {
    return undefined;
  }
  const path = route.spec.path?.startsWith('/') ? route.spec.path : '';
  return `${route.spec.tls ? 'https' : 'http'}://${host}${encodeURI(path)}`;
}

/** admission reports whether a router has admitted a route and, if not, the reason. */
export function admission(route: Route): { admitted: boolean; reason: string } {
  const conditions = (route.status?.ingress ?? []).flatMap((ingress) => ingress.conditions ?? []).filter((c) => c.type === 'Admitted');
  const refused = conditions.find((c) => c.status !== 'True');
  return {
    admitted: conditions.some((c) => c.status === 'True'),
    reason: refused ? [refused.reason, refused.message].filter(Boolean).join(': ') : '',
  };
}
