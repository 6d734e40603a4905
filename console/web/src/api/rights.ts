import { post } from './http';

interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

/** Rights contains the user's permissions in one project, as returned by a review. */
export class Rights {
  constructor(private readonly rules: Rule[]) {}

  /**
   * may reports whether the user may use a verb on a resource, such as update deployments/scale.
   */
  may(verb: string, group: string, resource: string, name?: string): boolean {
    const [, subresource] = resource.split('/');
    return this.rules.some(
      (rule) =>
        has(rule.verbs, verb) &&
        has(rule.apiGroups ?? [], group) &&
        (has(rule.resources ?? [], resource) || (subresource !== undefined && (rule.resources ?? []).includes(`*/${subresource}`))) &&
        (!rule.resourceNames?.length || (name !== undefined && rule.resourceNames.includes(name))),
    );
  }
}

function has(values: string[], value: string): boolean {
  return values.includes(value) || values.includes('*');
}

/** reviewRights requests the user's permissions in a project. */
export async function reviewRights(namespace: string): Promise<Rights> {
  const request = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
  const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';
  const review = await post<{ status: { resourceRules: Rule[] } }>(path, request, { repeatable: true });
  return new Rights(review.status.resourceRules ?? []);
}
