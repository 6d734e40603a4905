import { text } from '../text/en';
import { mayLink } from './constants';

/**
 * createPath returns the path of the form for a link that creates an application, such as
 * /console/create?imageStream=python&sourceURI=https://github.com/me/app.git. The parameters are
 * the same as in OpenShift 3's console. createPath fails if links cannot name objects of the
 * project.
 */
export function createPath(link: URLSearchParams): string {
  const namespace = link.get('namespace') ?? 'openshift';
  if (!mayLink(namespace)) {
    throw new Error(text.failure.foreignLink(namespace));
  }
  const form = (kind: string, name: string, query: Record<string, string | null>) => {
    const present = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== null);
    return `/catalog/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}?${new URLSearchParams(present)}`;
  };
  const [template, stream] = [link.get('template'), link.get('imageStream')];
  if (template) {
    return form('template', template, { parameters: link.get('templateParamsMap') });
  }
  return stream
    ? form('builder', stream, { tag: link.get('imageTag'), name: link.get('name'), uri: link.get('sourceURI'), ref: link.get('sourceRef'), contextDir: link.get('contextDir') })
    : '/catalog';
}
