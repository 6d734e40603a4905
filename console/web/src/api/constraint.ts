import { post } from './http';
import type { LooseObject } from './types';

interface Review {
  status?: { allowedBy?: { name?: string } | null };
}

/**
 * Reviewed contains the names of the constraints that the server would choose for a pod. A name is
 * "" if no constraint allows the pod.
 */
export interface Reviewed {
  forAccount: string;
  forUser: string;
}

/** constraintKey is the pod annotation that contains the name of the pod's constraint. */
export const constraintKey = 'openshift.io/scc';

/**
 * reviewPod requests the constraints that the server would choose for a pod: on behalf of the pod's
 * service account, and on behalf of the session's user.
 */
export async function reviewPod(pod: LooseObject): Promise<Reviewed> {
  const { namespace = '', labels } = pod.metadata;
  const root = `/apis/security.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}`;
  const apiVersion = 'security.openshift.io/v1';
  const spec = pod.spec as { serviceAccountName?: string };
  // Remove the service account, because otherwise the server would also review its permissions.
  const template = { metadata: { labels }, spec: { ...spec, serviceAccountName: '' } };
  const user = `system:serviceaccount:${namespace}:${spec.serviceAccountName || 'default'}`;
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const [ofAccount, ofUser] = await Promise.all([
    post<Review>(`${root}/podsecuritypolicysubjectreviews`, { apiVersion, kind: 'PodSecurityPolicySubjectReview', spec: { template, user, groups } }, { repeatable: true }),
    post<Review>(`${root}/podsecuritypolicyselfsubjectreviews`, { apiVersion, kind: 'PodSecurityPolicySelfSubjectReview', spec: { template } }, { repeatable: true }),
  ]);
  return { forAccount: ofAccount.status?.allowedBy?.name ?? '', forUser: ofUser.status?.allowedBy?.name ?? '' };
}
