import { expect, test, vi } from 'vitest';
import { accountMayRun, debugPod } from './debug';
import type { LooseObject } from './types';

const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'shop', uid: '1', resourceVersion: '1', creationTimestamp: '' },
  spec: {
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        nodeName: 'n1',
        initContainers: [{ name: 'init' }],
        containers: [
          { name: 'web', image: 'i', command: ['run'], args: ['x'], livenessProbe: {}, volumeMounts: [{ name: 'kube-api-access-x1' }, { name: 'data' }] },
          { name: 'side', image: 's', command: ['side'], readinessProbe: {} },
        ],
        volumes: [{ name: 'kube-api-access-x1' }, { name: 'data' }],
      },
    },
  },
} as unknown as LooseObject;

test('a debug pod has a shell, and neither labels nor probes', () => {
  const pod = debugPod(deployment, 'web', true);
  expect(pod.metadata).toEqual({
    name: 'web-debug',
    namespace: 'shop',
    annotations: { 'debug.openshift.io/source-container': 'web', 'debug.openshift.io/source-resource': 'deployment/web' },
  });
  expect(JSON.parse(JSON.stringify(pod.spec))).toEqual({
    containers: [
      { name: 'web', image: 'i', command: ['/bin/sh'], stdin: true, tty: true, volumeMounts: [{ name: 'data' }], securityContext: { runAsUser: 0 } },
      { name: 'side', image: 's', command: ['side'], volumeMounts: [] },
    ],
    volumes: [{ name: 'data' }],
    restartPolicy: 'Never',
    activeDeadlineSeconds: 3600,
  });
});

test.each([
  ['a review that allows', 201, { status: { allowedBy: { name: 'restricted' } } }, true],
  ['a review that does not', 201, { status: {} }, false],
  ['a user who may not ask', 403, { kind: 'Status', reason: 'Forbidden' }, true],
])('%s decides whether the account may run the pods', async (_, status, body, want) => {
  const request = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(JSON.stringify(body), { status }));
  expect(await accountMayRun(deployment)).toBe(want);
  const sent = JSON.parse(request.mock.calls[0]?.[1]?.body as string) as { spec: { user: string; template: { spec: { containers: object[] } } } };
  expect(sent.spec.user).toBe('system:serviceaccount:shop:default');
  expect(sent.spec.template.spec.containers).toHaveLength(2);
  request.mockRestore();
});
