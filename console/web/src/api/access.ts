import { post } from './http';

/** Question identifies a permission: a verb on a resource, in a project or in the whole cluster. */
export interface Question {
  verb: string;
  group: string;
  resource: string;
  name: string;
  /** project is the name of a project, or empty for the whole cluster. */
  project: string;
}

/** Holders contains the subjects that have a permission. */
export interface Holders {
  users: string[];
  groups: string[];
  accounts: string[];
  /** incomplete describes the parts of the review that the server could not evaluate. */
  incomplete: string;
}

interface Response {
  users?: string[] | null;
  groups?: string[] | null;
  evaluationError?: string;
}

const root = '/apis/authorization.openshift.io/v1';
const accountPrefix = 'system:serviceaccount:';

/**
 * holdersOf sorts the subjects in a review's response. Service accounts have the form PROJECT/NAME.
 */
export function holdersOf(response: Response): Holders {
  const users = [...(response.users ?? [])].sort();
  return {
    users: users.filter((name) => !name.startsWith(accountPrefix)),
    accounts: users.filter((name) => name.startsWith(accountPrefix)).map((name) => name.slice(accountPrefix.length).replace(':', '/')),
    groups: [...(response.groups ?? [])].sort(),
    incomplete: response.evaluationError ?? '',
  };
}

/**
 * whoCan requests the subjects that have a permission. For a project, permission to create reviews
 * in that project is sufficient.
 */
export async function whoCan({ verb, group, resource, name, project }: Question): Promise<Holders> {
  const kind = project === '' ? 'ResourceAccessReview' : 'LocalResourceAccessReview';
  const path = project === '' ? `${root}/resourceaccessreviews` : `${root}/namespaces/${encodeURIComponent(project)}/localresourceaccessreviews`;
  const body = {
    apiVersion: 'authorization.openshift.io/v1', kind,
    verb, resource, resourceAPIGroup: group, resourceName: name, namespace: project, resourceAPIVersion: '', path: '', isNonResourceURL: false, content: null,
  };
  return holdersOf(await post<Response>(path, body, { repeatable: true }));
}
