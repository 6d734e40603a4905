import type { Route } from './routes';
import { quote } from './source';

/** Backend is a route's service with its weight, from 0 to 256. */
export interface Backend {
  name: string;
  weight: number;
}

const defaultWeight = 100;

/** trafficOf returns a route's services, primary service first. */
export function trafficOf({ spec }: Route): Backend[] {
  return [spec.to, ...(spec.alternateBackends ?? [])].flatMap((backend) => (backend?.name ? [{ name: backend.name, weight: backend.weight ?? defaultWeight }] : []));
}

/** sharesOf returns the services' shares as percentages. */
export function sharesOf(backends: Backend[]): number[] {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  return backends.map(({ weight }) => (total === 0 ? 0 : Math.round((weight / total) * 100)));
}

/** operationsOf returns the JSON patch that sets a route's services. */
export function operationsOf([main, ...others]: Backend[]): object[] {
  const service = (backend: Backend | undefined) => ({ kind: 'Service', name: backend?.name ?? '', weight: backend?.weight ?? 0 });
  return [
    { op: 'replace', path: '/spec/to', value: service(main) },
    { op: 'add', path: '/spec/alternateBackends', value: others.map(service) },
  ];
}

/** commandOf returns the oc command that sets the same services. */
export function commandOf(route: string, project: string, backends: Backend[]): string {
  return ['oc', 'set', 'route-backends', route, ...backends.map(({ name, weight }) => `${name}=${weight}`), '-n', project].map(quote).join(' ');
}
