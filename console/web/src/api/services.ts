import { useQuery } from '@tanstack/react-query';
import { get } from './http';
import type { KubeObject } from './types';

/** group is the path of the service catalog's kinds. */
const group = '/apis/servicecatalog.k8s.io/v1beta1';

/** templateBroker offers the templates, which the catalog shows as templates. */
const templateBroker = 'template-service-broker';

/** ServiceClass is a service that a broker offers, for all projects or for its own. */
export interface ServiceClass extends KubeObject {
  spec: {
    externalName: string;
    description?: string;
    bindable?: boolean;
    tags?: string[];
    clusterServiceBrokerName?: string;
    externalMetadata?: { displayName?: string; longDescription?: string; providerDisplayName?: string };
  };
  status?: { removedFromBrokerCatalog?: boolean };
}

/** Schema is the part of a JSON schema that a form supports. */
export interface Schema {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
}

/** ServicePlan is a plan of a service. */
export interface ServicePlan extends KubeObject {
  spec: { externalName: string; description?: string; free?: boolean; bindable?: boolean; instanceCreateParameterSchema?: Schema };
  status?: { removedFromBrokerCatalog?: boolean };
}

/** clusterPlace represents the project of classes for all projects. */
export const clusterPlace = 'cluster';

const collection = (place: string, name: string) => (place === clusterPlace ? `${group}/clusterservice${name}` : `${group}/namespaces/${encodeURIComponent(place)}/service${name}`);

/**
 * listClasses returns the services for all projects, and those of a project, that can be ordered.
 */
export async function listClasses(project: string | undefined): Promise<ServiceClass[]> {
  const places = project === undefined ? [clusterPlace] : [clusterPlace, project];
  // Not every user may list them. The rest of the catalog is still available.
  const lists = await Promise.all(places.map((place) => get<{ items: ServiceClass[] }>(collection(place, 'classes')).catch(() => ({ items: [] }))));
  return lists.flatMap(({ items }) => items).filter(({ spec, status }) => !status?.removedFromBrokerCatalog && spec.clusterServiceBrokerName !== templateBroker);
}

/** useService returns a class with the plans that can be ordered. */
export function useService(place: string, name: string) {
  const reference = place === clusterPlace ? 'clusterServiceClassRef' : 'serviceClassRef';
  return useQuery({
    queryKey: ['service', place, name],
    queryFn: async () => {
      const path = `${collection(place, 'plans')}?${new URLSearchParams({ fieldSelector: `spec.${reference}.name=${name}` })}`;
      const [of, plans] = await Promise.all([get<ServiceClass>(`${collection(place, 'classes')}/${encodeURIComponent(name)}`), get<{ items: ServicePlan[] }>(path)]);
      return { of, plans: plans.items.filter(({ status }) => !status?.removedFromBrokerCatalog) };
    },
  });
}

/** Order describes an instance that the user orders. */
export interface Order {
  name: string;
  place: string;
  className: string;
  planName: string;
  parameters: Record<string, unknown>;
  bind: boolean;
}

/** orderOf returns the instance, and the binding whose secret has its credentials. */
export function orderOf({ name, place, className, planName, parameters, bind }: Order): KubeObject[] {
  const apiVersion = 'servicecatalog.k8s.io/v1beta1';
  const prefix = place === clusterPlace ? 'clusterService' : 'service';
  const choice = { [`${prefix}ClassName`]: className, [`${prefix}PlanName`]: planName };
  const filled = Object.keys(parameters).length === 0 ? {} : { parameters };
  const objects: unknown[] = [{ apiVersion, kind: 'ServiceInstance', metadata: { name }, spec: { ...choice, ...filled } }];
  if (bind) {
    objects.push(bindingOf(name));
  }
  return objects as KubeObject[];
}

/** bindingOf returns a binding to an instance. */
export function bindingOf(instance: string): object {
  return { apiVersion: 'servicecatalog.k8s.io/v1beta1', kind: 'ServiceBinding', metadata: { name: instance }, spec: { instanceRef: { name: instance }, secretName: instance } };
}

/** valueOf parses the text that the user entered for a parameter. An empty text means no value. */
export function valueOf({ type }: Schema, entered: string): unknown {
  if (entered.trim() === '' && type !== 'string') {
    return undefined;
  }
  switch (type) {
    case 'string':
      return entered === '' ? undefined : entered;
    case 'integer':
    case 'number': {
      const value = Number(entered);
      if (!Number.isFinite(value) || (type === 'integer' && !Number.isInteger(value))) {
        throw new Error(`${entered} is not a number`);
      }
      return value;
    }
    case 'boolean':
      return entered === 'true';
    default:
      return JSON.parse(entered) as unknown;
  }
}
