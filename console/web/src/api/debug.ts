import { ApiError, post } from './http';
import type { KubeObject, LooseObject } from './types';

interface DebugContainer {
  name: string;
  volumeMounts?: { name: string }[];
  securityContext?: Record<string, unknown>;
  [field: string]: unknown;
}

interface DebugSpec {
  containers?: DebugContainer[];
  volumes?: { name: string }[];
  [field: string]: unknown;
}

/** lifetime is the maximum lifetime of a debug pod, in seconds. */
const lifetime = 3600;
const maxName = 57;
const tokenVolume = /^kube-api-access-/;

/** specOf returns the spec of an object's pods. The object is a pod, or has a pod template. */
function specOf(object: LooseObject): DebugSpec {
  const spec = object.spec as { template?: { spec?: DebugSpec } } & DebugSpec;
  return object.kind === 'Pod' ? spec : (spec.template?.spec ?? {});
}

/**
 * accountMayRun reports whether the service account of an object's pods may run these pods. A debug
 * pod runs with the user's permissions, but another user might have written the object. If the user
 * may not create reviews, accountMayRun returns true, because such users have few permissions.
 */
export async function accountMayRun(object: LooseObject): Promise<boolean> {
  const { namespace = '' } = object.metadata;
  const spec = specOf(object);
  const account = typeof spec.serviceAccountName === 'string' && spec.serviceAccountName !== '' ? spec.serviceAccountName : 'default';
  const review = {
    apiVersion: 'security.openshift.io/v1',
    kind: 'PodSecurityPolicySubjectReview',
    spec: {
      template: { spec },
      user: `system:serviceaccount:${namespace}:${account}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    },
  };
  try {
    const { status } = await post<{ status?: { allowedBy?: object } }>(`/apis/security.openshift.io/v1/namespaces/${encodeURIComponent(namespace)}/podsecuritypolicysubjectreviews`, review, { repeatable: true });
    return status?.allowedBy !== undefined;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) {
      return true;
    }
    throw error;
  }
}

/** containersToDebug returns the names of the containers in an object's pods. */
export function containersToDebug(object: LooseObject): string[] {
  return (specOf(object).containers ?? []).map(({ name }) => name);
}

/**
 * debugPod returns a copy of an object's pod with a shell in one container. The copy has no labels,
 * so that no service selects it. It has the annotations that oc debug sets.
 */
export function debugPod(object: LooseObject, container: string, asRoot: boolean): Omit<KubeObject, 'metadata'> & { metadata: object; spec: DebugSpec } {
  const { nodeName: _, initContainers: __, ephemeralContainers: ___, hostname: ____, ...spec } = structuredClone(specOf(object));
  const containers = (spec.containers ?? []).map(({ livenessProbe: _1, readinessProbe: _2, startupProbe: _3, lifecycle: _4, ...rest }) => {
    const mounted: DebugContainer = { ...(rest as DebugContainer), volumeMounts: (rest.volumeMounts ?? []).filter(({ name }) => !tokenVolume.test(name)) };
    if (mounted.name !== container) {
      return mounted;
    }
    const securityContext = asRoot ? { ...mounted.securityContext, runAsUser: 0, runAsNonRoot: undefined } : mounted.securityContext;
    return { ...mounted, command: ['/bin/sh'], args: undefined, stdin: true, tty: true, securityContext };
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${object.metadata.name.slice(0, maxName).replace(/[^a-z0-9]+$/, '')}-debug`,
      namespace: object.metadata.namespace,
      annotations: {
        'debug.openshift.io/source-container': container,
        'debug.openshift.io/source-resource': `${object.kind.toLowerCase()}/${object.metadata.name}`,
      },
    },
    spec: {
      ...spec,
      containers,
      volumes: (spec.volumes ?? []).filter(({ name }) => !tokenVolume.test(name)),
      restartPolicy: 'Never',
      activeDeadlineSeconds: lifetime,
    },
  };
}
