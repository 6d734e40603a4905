import { warnings as t } from '../../text/warnings';
import type { Route } from '../routes';
import type { KubeObject } from '../types';
import { ids, listOf, type State, type Warning } from './state';

interface Service extends KubeObject {
  spec: { ports?: unknown[] };
}

/** routeWarnings finds routes without a service or port, and routes that a router rejects. */
export function routeWarnings(state: State): Warning[] {
  const services = state.of(ids.services) as unknown as Service[] | undefined;
  return listOf<Route>(state, ids.routes).flatMap((route) => [
    ...(services ? backendWarnings(route, services) : []),
    ...(route.spec.tls && !route.spec.tls.termination ? [{ level: 'error' as const, resource: ids.routes, name: route.metadata.name, ...t.noTermination() }] : []),
    ...rejections(route),
  ]);
}

function backendWarnings({ metadata: { name }, spec }: Route, services: Service[]): Warning[] {
  const backends = [spec.to?.name, ...(spec.alternateBackends ?? []).map((backend) => backend.name)];
  return backends.flatMap((backend): Warning[] => {
    const service = services.find(({ metadata }) => metadata.name === backend);
    if (!service) {
      return [{ level: 'warning', resource: ids.routes, name, tab: 'traffic', ...t.noService(backend ?? '') }];
    }
    return !spec.port && (service.spec.ports?.length ?? 0) > 1 ? [{ level: 'warning', resource: ids.routes, name, ...t.manyPorts(service.metadata.name) }] : [];
  });
}

function rejections({ metadata: { name }, status }: Route): Warning[] {
  return (status?.ingress ?? []).flatMap(({ routerName = '', conditions = [] }) =>
    conditions
      .filter(({ type, status }) => type === 'Admitted' && status === 'False')
      .map(({ reason, message }): Warning => ({ level: 'error', resource: ids.routes, name, ...t.refused(routerName, [reason, message].filter(Boolean).join(': ')) })),
  );
}

interface Scaler extends KubeObject {
  spec: { scaleTargetRef: { kind: string; name: string } };
}

/** targetIDs maps the kinds that autoscalers scale to the IDs of their resources. */
const targetIDs = new Map([
  ['DeploymentConfig', ids.configs],
  ['Deployment', ids.deployments],
  ['ReplicationController', ids.controllers],
  ['ReplicaSet', ids.replicaSets],
  ['StatefulSet', ids.statefulSets],
]);

/** scalerWarnings finds autoscalers whose target does not exist. */
export function scalerWarnings(state: State): Warning[] {
  return listOf<Scaler>(state, ids.scalers).flatMap(({ metadata, spec: { scaleTargetRef: target } }): Warning[] => {
    const id = targetIDs.get(target.kind);
    const targets = id && state.of(id);
    const isMissing = targets && !targets.some((object) => object.metadata.name === target.name);
    return isMissing ? [{ level: 'error', resource: ids.scalers, name: metadata.name, ...t.noTarget(`${target.kind} ${target.name}`) }] : [];
  });
}
