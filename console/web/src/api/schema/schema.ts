import { get } from '../http';

/** Schema contains the fields of an OpenAPI v3 schema that the editor reads. */
export interface Schema {
  $ref?: string;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  default?: unknown;
  additionalProperties?: Schema | boolean;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[];
}

/** Definitions contains the schemas of a group version, keyed by reference. */
export type Definitions = Record<string, Schema>;

/** Typed is the schema of a kind. */
export interface Typed {
  schema: Schema;
  definitions: Definitions;
}

/** Lookup returns a kind's schema, or undefined if the server has none. */
export type Lookup = (apiVersion: string, kind: string) => Promise<Typed | undefined>;

interface Index {
  paths?: Record<string, { serverRelativeURL: string }>;
}

interface Document {
  components?: { schemas?: Definitions };
}

const prefix = '#/components/schemas/';

/** loaded contains the definitions of the group versions that were requested. */
const loaded = new Map<string, Promise<Definitions>>();

/** definitionsOf requests the definitions of a group version at most once. */
function definitionsOf(groupVersion: string): Promise<Definitions> {
  const known = loaded.get(groupVersion);
  if (known) {
    return known;
  }
  const request = get<Index>('/openapi/v3').then(async ({ paths = {} }) => {
    const url = paths[groupVersion.includes('/') ? `apis/${groupVersion}` : `api/${groupVersion}`]?.serverRelativeURL;
    return url ? ((await get<Document>(url)).components?.schemas ?? {}) : {};
  });
  loaded.set(groupVersion, request);
  request.catch(() => loaded.delete(groupVersion));
  return request;
}

/** schemaOf returns the server's schema for a kind, or undefined if the server does not respond. */
export const schemaOf: Lookup = async (apiVersion, kind) => {
  let definitions: Definitions;
  try {
    definitions = await definitionsOf(apiVersion);
  } catch {
    return undefined; // the server validates the objects that it receives
  }
  const [version, group = ''] = apiVersion.split('/').reverse();
  const schema = Object.values(definitions).find((definition) =>
    definition['x-kubernetes-group-version-kind']?.some((of) => of.kind === kind && of.group === group && of.version === version),
  );
  return schema && { schema, definitions };
};

/**
 * maxReferences is the maximum number of references to follow, because references can form a cycle.
 */
const maxReferences = 10;

/** resolve follows a schema's references. A description next to a reference takes precedence. */
export function resolve(schema: Schema | undefined, definitions: Definitions): Schema {
  let current = schema ?? {};
  for (let i = 0; i < maxReferences; i++) {
    const { allOf: [only] = [], description } = current;
    const reference = current.$ref ?? only?.$ref;
    if (reference === undefined) {
      return current;
    }
    current = { ...definitions[reference.replace(prefix, '')], ...(description ? { description } : {}) };
  }
  return {};
}

/** typesOf returns the types of the values that a schema accepts. An empty list means any type. */
export function typesOf(schema: Schema, definitions: Definitions): string[] {
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') {
    return ['integer', 'string'];
  }
  if (schema.type) {
    return [schema.type];
  }
  return (schema.oneOf ?? schema.anyOf ?? []).flatMap((one) => resolve(one, definitions).type ?? []);
}

/**
 * fieldOf returns the schema of a field. It returns undefined if the object has no such field, and
 * {} if the field accepts any value.
 */
export function fieldOf(schema: Schema, name: string): Schema | undefined {
  const { properties, additionalProperties } = schema;
  const known = properties?.[name];
  if (known) {
    return known;
  }
  if (typeof additionalProperties === 'object') {
    return additionalProperties;
  }
  return !properties || additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields'] ? {} : undefined;
}

/**
 * requiredOf returns the names of required fields without a default. Zero values are not defaults,
 * because the schemas of Kubernetes' own types list each field's zero value as its default.
 */
export function requiredOf(schema: Schema): string[] {
  return (schema.required ?? []).filter((name) => {
    const { default: value, $ref, allOf } = schema.properties?.[name] ?? {};
    return $ref !== undefined || allOf !== undefined || value === undefined || value === '' || value === 0 || value === false;
  });
}
