import { useQuery } from '@tanstack/react-query';
import { get } from './http';
import type { KubeObject, LooseObject } from './types';
import { text } from '../text/en';

/** group is the path of the service catalog's API group. */
const group = '/apis/servicecatalog.k8s.io/v1beta1';

/**
 * templateBroker is the broker that offers templates as services. The catalog omits these services,
 * because it shows the templates themselves.
 */
const templateBroker = 'template-service-broker';

/**
 * ServiceClass is a service that a broker offers, in all projects or only in the broker's project.
 */
export interface ServiceClass extends KubeObject {
  spec: {
    externalName: string;
    description?: string;
    bindable?: boolean;
    planUpdatable?: boolean;
    tags?: string[];
    clusterServiceBrokerName?: string;
    externalMetadata?: { displayName?: string; longDescription?: string; providerDisplayName?: string; imageUrl?: string; 'console.openshift.io/iconClass'?: string };
  };
  status?: { removedFromBrokerCatalog?: boolean };
}

/** Schema contains the fields of a JSON schema that a form supports. */
export interface Schema {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, Schema>;
}

/** ServicePlan is a service's plan. */
export interface ServicePlan extends KubeObject {
  spec: {
    externalName: string;
    externalID: string;
    description?: string;
    free?: boolean;
    bindable?: boolean;
    planUpdatable?: boolean;
    instanceCreateParameterSchema?: Schema;
    instanceUpdateParameterSchema?: Schema;
    serviceBindingCreateParameterSchema?: Schema;
  };
  status?: { removedFromBrokerCatalog?: boolean };
}

/** clusterPlace replaces the name of a project for cluster-wide classes. */
export const clusterPlace = 'cluster';

const collection = (place: string, name: string) => (place === clusterPlace ? `${group}/clusterservice${name}` : `${group}/namespaces/${encodeURIComponent(place)}/service${name}`);

/**
 * listClasses returns the services that users can order: cluster-wide services, and a project's
 * services.
 */
export async function listClasses(project: string | undefined): Promise<ServiceClass[]> {
  const places = project === undefined ? [clusterPlace] : [clusterPlace, project];
  // Ignore errors, because some users are not allowed to list the services. The rest of the catalog
  // is still available to them.
  const lists = await Promise.all(places.map((place) => get<{ items: ServiceClass[] }>(collection(place, 'classes')).catch(() => ({ items: [] }))));
  return lists.flatMap(({ items }) => items).filter(({ spec, status }) => !status?.removedFromBrokerCatalog && spec.clusterServiceBrokerName !== templateBroker);
}

/** Service is a class with the plans that users can order. */
export interface Service {
  of: ServiceClass;
  plans: ServicePlan[];
}

/** useService returns a service, or undefined while name is empty. */
export function useService(place: string, name: string) {
  const reference = place === clusterPlace ? 'clusterServiceClassRef' : 'serviceClassRef';
  return useQuery({
    queryKey: ['service', place, name],
    enabled: name !== '',
    queryFn: async (): Promise<Service> => {
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
  /** binding contains the binding's parameters. If it is undefined, no binding is created. */
  binding?: Record<string, unknown>;
}

/**
 * orderOf returns the instance to create and, if requested, the binding whose secret contains the
 * credentials.
 */
export function orderOf({ name, place, className, planName, parameters, binding }: Order): KubeObject[] {
  const apiVersion = 'servicecatalog.k8s.io/v1beta1';
  const prefix = place === clusterPlace ? 'clusterService' : 'service';
  const choice = { [`${prefix}ClassName`]: className, [`${prefix}PlanName`]: planName };
  const filled = Object.keys(parameters).length === 0 ? {} : { parameters };
  const objects: unknown[] = [{ apiVersion, kind: 'ServiceInstance', metadata: { name }, spec: { ...choice, ...filled } }];
  if (binding) {
    objects.push(bindingOf(name, name, binding));
  }
  return objects as KubeObject[];
}

/**
 * bindingOf returns a binding to an instance. The secret with the credentials has the binding's
 * name.
 */
export function bindingOf(name: string, instance: string, parameters: Record<string, unknown>): object {
  const filled = Object.keys(parameters).length === 0 ? {} : { parameters };
  return { apiVersion: 'servicecatalog.k8s.io/v1beta1', kind: 'ServiceBinding', metadata: { name }, spec: { instanceRef: { name: instance }, secretName: name, ...filled } };
}

/**
 * InstanceSpec is an instance's spec. Only one pair of the fields for the class and the plan is
 * set.
 */
interface InstanceSpec {
  clusterServiceClassRef?: { name: string };
  serviceClassRef?: { name: string };
  parameters?: Record<string, unknown>;
  [field: string]: unknown;
}

const specOf = (instance: LooseObject) => (instance.spec ?? {}) as InstanceSpec;

/**
 * classOf returns the project and the name of an instance's class. The name is empty until the
 * catalog has resolved the class.
 */
export function classOf(instance: LooseObject): { place: string; name: string } {
  const { clusterServiceClassRef: shared, serviceClassRef: own } = specOf(instance);
  return own ? { place: instance.metadata.namespace ?? '', name: own.name } : { place: clusterPlace, name: shared?.name ?? '' };
}

/**
 * planFields contains the suffixes of the fields that can select a plan, with the property that
 * each field contains.
 */
const planFields: [ending: string, nameOf: (plan: ServicePlan) => string][] = [
  ['ServicePlanExternalName', ({ spec }) => spec.externalName],
  ['ServicePlanExternalID', ({ spec }) => spec.externalID],
  ['ServicePlanName', ({ metadata }) => metadata.name],
];

/**
 * planFieldOf returns the field of an instance that selects its plan, and the property that the
 * field contains.
 */
function planFieldOf(instance: LooseObject): [field: string, nameOf: (plan: ServicePlan) => string] | undefined {
  const set = Object.keys(specOf(instance));
  return planFields.flatMap(([ending, nameOf]) => [`cluster${ending}`, ending.replace('S', 's')].filter((field) => set.includes(field)).map((field): [string, typeof nameOf] => [field, nameOf]))[0];
}

/**
 * planOf returns an instance's plan. It returns undefined if the broker no longer offers the plan.
 */
export function planOf(instance: LooseObject, plans: ServicePlan[]): ServicePlan | undefined {
  const [field = '', nameOf] = planFieldOf(instance) ?? [];
  return plans.find((plan) => nameOf?.(plan) === specOf(instance)[field]);
}

/** parametersOfInstance returns an instance's parameters. It omits parameters in secrets. */
export const parametersOfInstance = (instance: LooseObject): Record<string, unknown> => specOf(instance).parameters ?? {};

/** updateOf returns the JSON patch that changes an instance's plan and parameters. */
export function updateOf(instance: LooseObject, plan: ServicePlan, parameters: Record<string, unknown>): object[] {
  const [field, nameOf] = planFieldOf(instance) ?? [];
  return [...(field && nameOf ? [{ op: 'replace', path: `/spec/${field}`, value: nameOf(plan) }] : []), { op: 'add', path: '/spec/parameters', value: parameters }];
}

/**
 * anything is the schema of a single field for all parameters. It is used if the broker does not
 * describe the parameters.
 */
const anything: Schema = { title: text.services.parameters, description: text.services.parametersHelp };

/**
 * fieldsOf returns the fields for parameters. If the broker does not describe the parameters, it
 * returns a single field whose name is empty.
 */
export function fieldsOf(schema: Schema | undefined): [name: string, field: Schema][] {
  return schema?.properties ? Object.entries(schema.properties) : [['', anything]];
}

/**
 * textsOf returns the text for each field: the existing parameter, or otherwise the default value.
 */
export function textsOf(schema: Schema | undefined, parameters: Record<string, unknown> = {}): Record<string, string> {
  const isEmpty = Object.keys(parameters).length === 0;
  return Object.fromEntries(
    fieldsOf(schema).map(([name, field]) => {
      const value = name === '' ? (isEmpty ? undefined : parameters) : (parameters[name] ?? field.default);
      return [name, value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)];
    }),
  );
}

/** isComplete reports whether all required parameters have a value. */
export function isComplete(schema: Schema | undefined, texts: Record<string, string>): boolean {
  return (schema?.required ?? []).every((name) => texts[name] !== '');
}

/**
 * parametersOf parses the text in each field. It keeps existing parameters that have no field. It
 * throws an error if a text is invalid.
 */
export function parametersOf(schema: Schema | undefined, texts: Record<string, string>, existing: Record<string, unknown> = {}): Record<string, unknown> {
  if (!schema?.properties) {
    return (valueOf(anything, texts[''] ?? '') ?? {}) as Record<string, unknown>;
  }
  const fields = fieldsOf(schema);
  const kept = Object.entries(existing).filter(([name]) => !fields.some(([field]) => field === name));
  const entered = fields.map(([name, field]) => [name, valueOf(field, texts[name] ?? '')] as const).filter(([, value]) => value !== undefined);
  return Object.fromEntries([...kept, ...entered]);
}

/**
 * valueOf parses the text that the user entered for a parameter. It returns undefined for an empty
 * text.
 */
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
        throw new Error(text.services.notNumber(entered));
      }
      return value;
    }
    case 'boolean':
      return entered === 'true';
    default:
      return JSON.parse(entered) as unknown;
  }
}
