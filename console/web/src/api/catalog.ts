import { useQuery } from '@tanstack/react-query';
import { get, post } from './http';
import { own } from './own';
import { clusterPlace, listClasses, type ServiceClass } from './services';
import type { KubeObject } from './types';

/** Parameter is a parameter of a template. */
export interface Parameter {
  name: string;
  displayName?: string;
  description?: string;
  value?: string;
  generate?: string;
  required?: boolean;
}

export interface Template extends KubeObject {
  message?: string;
  parameters?: Parameter[];
  objects?: KubeObject[];
}

interface StreamTag {
  name: string;
  annotations?: Record<string, string> | null;
}

export interface ImageStream extends KubeObject {
  spec?: { tags?: StreamTag[] };
  status?: { tags?: { tag: string; items?: unknown[] | null }[] };
}

/**
 * Icon is the picture of an item. name is the name of a logo, such as icon-nodejs. image is the URL
 * of an image that the item contains.
 */
export interface Icon {
  name: string;
  image?: string;
}

/** Item is a tile of the catalog. */
export interface Item {
  /** path is the path below /catalog of the form that creates the item's objects. */
  path: string;
  title: string;
  provider: string;
  description: string;
  tags: string[];
  kind: 'template' | 'builder' | 'service';
  icon: Icon;
}

/** sharedNamespace is the project whose templates and images all projects can use. */
export const sharedNamespace = 'openshift';

const annotation = (object: KubeObject, key: string) => object.metadata.annotations?.[key] ?? '';
const split = (tags: string | undefined) => (tags ?? '').split(',').map((tag) => tag.trim()).filter(Boolean);

/** isBuilder reports whether the catalog offers an image stream tag as a builder image. */
function isBuilder(tag: StreamTag): boolean {
  const tags = split(tag.annotations?.tags);
  return tags.includes('builder') && !tags.includes('hidden');
}

/** tagsOf returns the tags in the annotations of a template. */
export const tagsOf = (annotations: Record<string, string>) => split(annotations.tags);

/**
 * buildersOf returns the tags of an image stream that can build from source: latest, which is the
 * default of `oc new-app`, and then the versions, newest first. The server sorts tags by name.
 */
export function buildersOf(stream: ImageStream): StreamTag[] {
  const latest = (tag: StreamTag) => Number(tag.name === 'latest');
  return (stream.spec?.tags ?? [])
    .filter(isBuilder)
    .sort((a, b) => latest(b) - latest(a) || b.name.localeCompare(a.name, 'en', { numeric: true }));
}

/**
 * serviceIcon returns the icon of a service. It omits images on other servers, because requests for
 * these images would reveal who views the catalog. The page's content security policy also blocks
 * such images.
 */
export function serviceIcon(metadata: ServiceClass['spec']['externalMetadata']): Icon {
  const { imageUrl, 'console.openshift.io/iconClass': name }: Record<string, unknown> = metadata ?? {}; // a broker can send any JSON
  return { name: typeof name === 'string' ? name : '', image: typeof imageUrl === 'string' && imageUrl.startsWith('data:image/') ? imageUrl : undefined };
}

/** serviceItem returns the tile of a service. */
function serviceItem({ metadata, spec }: ServiceClass): Item {
  return {
    path: `service/${metadata.namespace ?? clusterPlace}/${metadata.name}`,
    title: spec.externalMetadata?.displayName ?? spec.externalName,
    provider: spec.externalMetadata?.providerDisplayName ?? '',
    description: spec.description ?? '',
    tags: spec.tags ?? [],
    kind: 'service',
    icon: serviceIcon(spec.externalMetadata),
  };
}

/** itemsOf returns the tiles for templates, image streams and services, sorted by title. */
export function itemsOf(templates: Template[], streams: ImageStream[], classes: ServiceClass[] = []): Item[] {
  const items: Item[] = templates.map((template) => ({
    path: `template/${template.metadata.namespace}/${template.metadata.name}`,
    title: annotation(template, 'openshift.io/display-name') || template.metadata.name,
    provider: annotation(template, 'openshift.io/provider-display-name'),
    description: annotation(template, 'description'),
    tags: split(annotation(template, 'tags')),
    kind: 'template',
    icon: { name: annotation(template, 'iconClass') },
  }));
  items.push(...classes.map(serviceItem));
  for (const stream of streams) {
    const [first] = buildersOf(stream);
    if (first) {
      items.push({
        path: `builder/${stream.metadata.namespace}/${stream.metadata.name}`,
        title: annotation(stream, 'openshift.io/display-name') || stream.metadata.name,
        provider: annotation(stream, 'openshift.io/provider-display-name'),
        description: first.annotations?.description ?? '',
        tags: split(first.annotations?.tags),
        kind: 'builder',
        icon: { name: first.annotations?.iconClass ?? '' },
      });
    }
  }
  return items.filter((item) => !item.tags.includes('hidden')).sort((a, b) => a.title.localeCompare(b.title));
}

/**
 * supports reports whether an image stream has a builder tag for a programming language. The tag's
 * annotation has a form such as "ruby:2.5,ruby".
 */
export function supports(stream: ImageStream, language: string): boolean {
  return buildersOf(stream).some(({ annotations }) => split(annotations?.supports).some((item) => item.split(':')[0] === language));
}

const list = async <T>(path: string) => (await get<{ items: T[] }>(path)).items;
const templatesPath = (namespace: string) => `/apis/template.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/templates`;
/** streamsPath returns the path of a project's image streams. */
export const streamsPath = (namespace: string) => `/apis/image.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/imagestreams`;

/** useCatalog returns the tiles for the shared project and for the current project. */
export function useCatalog(project: string | undefined) {
  const namespaces = project === undefined || project === sharedNamespace ? [sharedNamespace] : [sharedNamespace, project];
  return useQuery({
    queryKey: ['catalog', ...namespaces],
    queryFn: async () => {
      const [templates, streams, classes] = await Promise.all([
        Promise.all(namespaces.map((namespace) => list<Template>(templatesPath(namespace)))),
        Promise.all(namespaces.map((namespace) => list<ImageStream>(streamsPath(namespace)))),
        listClasses(project),
      ]);
      return itemsOf(templates.flat(), streams.flat(), classes);
    },
    staleTime: 60_000,
  });
}

/**
 * findBuilders returns the image streams with builders for a programming language, from a project
 * and from the shared project.
 */
export async function findBuilders(project: string, language: string): Promise<ImageStream[]> {
  const namespaces = [...new Set([project, sharedNamespace])];
  const streams = await Promise.all(namespaces.map((namespace) => list<ImageStream>(streamsPath(namespace))));
  return streams.flat().filter((stream) => supports(stream, language));
}

export function useTemplate(namespace: string, name: string) {
  return useQuery({ queryKey: ['template', namespace, name], queryFn: () => get<Template>(`${templatesPath(namespace)}/${encodeURIComponent(name)}`) });
}

export function useImageStream(namespace: string, name: string) {
  return useQuery({ queryKey: ['stream', namespace, name], queryFn: () => get<ImageStream>(`${streamsPath(namespace)}/${encodeURIComponent(name)}`) });
}

/**
 * initialParameters returns the values of a template's parameters. preset is a JSON object with the
 * values that a link sets.
 */
export function initialParameters(parameters: Parameter[], preset: string | null): Record<string, string> {
  let linked: unknown;
  try {
    linked = JSON.parse(preset ?? '{}');
  } catch {
    linked = {}; // the form shows the default values
  }
  const valueOf = ({ name, value = '' }: Parameter) => {
    const text = own((linked ?? {}) as Record<string, unknown>, name);
    return typeof text === 'string' ? text : value;
  };
  return Object.fromEntries(parameters.map((parameter) => [parameter.name, valueOf(parameter)]));
}

/**
 * process replaces the parameters in a template with their values, and returns the template with
 * the objects to create.
 */
export function process(template: Template, project: string, values: Record<string, string>): Promise<Template> {
  const parameters = (template.parameters ?? []).map((parameter) => ({ ...parameter, value: values[parameter.name] ?? parameter.value }));
  const metadata = { name: template.metadata.name, annotations: template.metadata.annotations };
  return post<Template>(`/apis/template.openshift.io/v1/namespaces/${encodeURIComponent(project)}/processedtemplates`, { ...template, metadata, parameters }, { repeatable: true });
}
