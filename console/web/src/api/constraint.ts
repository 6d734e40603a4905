import { post } from './http';
import type { LooseObject } from './types';

interface Review {
  status?: { allowedBy?: { name?: string } | null };
}

/** Reviewed are the constraints that the server would choose for a pod. Empty if there is none. */
export interface Reviewed {
  forAccount: string;
  forUser: string;
}

/** constraintKey is the annotation of a pod with the name of its constraint. */
export const constraintKey = 'openshift.io/scc';

/**
 * reviewPod requests the constraint that a pod's service account, and the user of the session,
 * would get.
 */
export async function reviewPod(pod: LooseObject): Promise<Reviewed> {
  const { namespace = '', labels } = pod.metadata;
  const root = `/apis/security.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}`;
  const apiVersion = 'security.openshift.io/v1';
  const spec = pod.spec as { serviceAccountName?: string };
  // Without its service account, so that the review is about the subjects alone.
  const template = { metadata: { labels }, spec: { ...spec, serviceAccountName: '' } };
  const user = `system:serviceaccount:${namespace}:${spec.serviceAccountName || 'default'}`;
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const [ofAccount, ofUser] = await Promise.all([
    post<Review>(`${root}/podsecuritypolicysubjectreviews`, { apiVersion, kind: 'PodSecurityPolicySubjectReview', spec: { template, user, groups } }, { repeatable: true }),
    post<Review>(`${root}/podsecuritypolicyselfsubjectreviews`, { apiVersion, kind: 'PodSecurityPolicySelfSubjectReview', spec: { template } }, { repeatable: true }),
  ]);
  return { forAccount: ofAccount.status?.allowedBy?.name ?? '', forUser: ofUser.status?.allowedBy?.name ?? '' };
}
