import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/types';
import { forms } from './forms';
import { initialValues, isComplete, shownInputs, type Form } from './model';

const fill = (form: Form, values: Record<string, string>) => ({ ...initialValues(form), ...values });
const keys = (form: Form, values: Record<string, string>) => shownInputs(form, fill(form, values)).map(({ key }) => key);

afterEach(() => {
  delete window.OPENSHIFT_CONSTANTS;
});

describe('The form of a secret', () => {
  const form = forms.secrets;

  it('shows the fields of the type', () => {
    expect(keys(form, {})).toEqual(['kind', 'pairs']);
    expect(keys(form, { kind: 'ssh' })).toEqual(['kind', 'sshKey', 'gitconfig']);
    expect(keys(form, { kind: 'registry' })).toEqual(['kind', 'server', 'username', 'password', 'email']);
  });

  it.each([
    ['generic', { pairs: '[["a","1"],[".b","2"]]' }, 'Opaque', { a: '1', '.b': '2' }],
    ['basic', { user: 'ann', password: 'p' }, 'kubernetes.io/basic-auth', { username: 'ann', password: 'p' }],
    ['ssh', { sshKey: 'KEY' }, 'kubernetes.io/ssh-auth', { 'ssh-privatekey': 'KEY\n' }],
    ['tls', { certificate: 'C\n\n', key: 'K' }, 'kubernetes.io/tls', { 'tls.crt': 'C\n', 'tls.key': 'K\n' }],
    ['webhook', { webhook: 'w' }, 'Opaque', { WebHookSecretKey: 'w' }],
  ])('writes a secret of the type %s', (kind, values, type, stringData) => {
    const all = fill(form, { kind, ...values } as Record<string, string>);
    expect(isComplete(form, all)).toBe(true);
    expect(form.object(all)).toEqual({ apiVersion: 'v1', kind: 'Secret', type, stringData });
  });

  it('encodes the credentials of a registry, also beyond ASCII', () => {
    const { stringData } = form.object(fill(form, { kind: 'registry', server: 'r:5000', username: 'ann', password: 'pä' })) as unknown as { stringData: Record<string, string> };
    const { auths } = JSON.parse(stringData['.dockerconfigjson'] ?? '') as { auths: Record<string, { auth: string }> };
    expect(auths['r:5000']).toEqual({ username: 'ann', password: 'pä', auth: Buffer.from('ann:pä').toString('base64') });
  });

  it('rejects invalid keys', () => {
    const refused = ['[["",""]]', '[["a b","1"]]', '[["a","1"],["a","2"]]'];
    expect(refused.map((pairs) => isComplete(form, fill(form, { pairs })))).toEqual([false, false, false]);
  });
});

it('writes a config map', () => {
  const form = forms.configmaps;
  expect(isComplete(form, initialValues(form))).toBe(false);
  const values = fill(form, { pairs: '[["app.conf","a=1\\nb=2\\n"],["mode","fast"]]' });
  expect(isComplete(form, values)).toBe(true);
  expect(form.object(values)).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', data: { 'app.conf': 'a=1\nb=2\n', mode: 'fast' } });
});

it('requests storage of the default class or of another', () => {
  const form = forms.persistentvolumeclaims;
  expect(form.object(fill(form, { size: '2Gi' }))).toMatchObject({ spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } } });
  expect((form.object(fill(form, {})) as unknown as { spec: object }).spec).not.toHaveProperty('storageClassName');
  expect(form.object(fill(form, { class: 'fast' }))).toMatchObject({ spec: { storageClassName: 'fast' } });
  expect(isComplete(form, fill(form, { size: 'big' }))).toBe(false);
});

it('takes a snapshot of the claim in the address, and restores one', () => {
  const snapshots = forms['volumesnapshots.snapshot.storage.k8s.io'];
  expect(isComplete(snapshots, initialValues(snapshots))).toBe(false);
  const taken = initialValues(snapshots, new URLSearchParams({ claim: 'data' }));
  expect(isComplete(snapshots, taken)).toBe(true);
  expect(snapshots.object(taken)).toMatchObject({ kind: 'VolumeSnapshot', spec: { source: { persistentVolumeClaimName: 'data' } } });
  const claims = forms.persistentvolumeclaims;
  expect(keys(claims, {})).not.toContain('snapshot');
  expect(claims.object(initialValues(claims, new URLSearchParams({ snapshot: 'monday' })))).toMatchObject({
    spec: { dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'monday' } },
  });
});

describe('The form of a route', () => {
  const form = forms['routes.route.openshift.io'];

  it('divides requests between two services', () => {
    const { spec } = form.object(fill(form, { service: 'a', other: 'b', share: '30', port: '8080' })) as unknown as { spec: object };
    expect(spec).toEqual({
      to: { kind: 'Service', name: 'a', weight: 70 },
      alternateBackends: [{ kind: 'Service', name: 'b', weight: 30 }],
      port: { targetPort: 8080 },
    });
  });

  it('writes only the certificates of the termination', () => {
    const files = { certificate: 'C', key: 'K', destination: 'D', insecure: 'Redirect', path: '/a' };
    const spec = (termination: string) => (form.object(fill(form, { service: 'a', termination, ...files })) as unknown as { spec: Record<string, unknown> }).spec;
    expect(spec('edge')).toMatchObject({ path: '/a', tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect', certificate: 'C', key: 'K' } });
    expect(spec('passthrough')).toEqual({ to: { kind: 'Service', name: 'a' }, tls: { termination: 'passthrough', insecureEdgeTerminationPolicy: 'Redirect' } });
    expect(spec('reencrypt').tls).toHaveProperty('destinationCACertificate', 'D');
    expect(spec('')).not.toHaveProperty('tls');
  });

  it('offers routes for all names in a domain only if scripts have enabled them', () => {
    const values = fill(form, { service: 'a', host: '*.example.com' });
    expect(isComplete(form, values)).toBe(false);
    window.OPENSHIFT_CONSTANTS = { DISABLE_WILDCARD_ROUTES: false };
    expect(isComplete(form, values)).toBe(true);
    expect(form.object(values)).toMatchObject({ spec: { host: 'wildcard.example.com', wildcardPolicy: 'Subdomain' } });
    expect(isComplete(form, fill(form, { service: 'a', host: '*.*.com' }))).toBe(false);
  });

  it('offers the ports of the chosen service', () => {
    const services = [{ metadata: { name: 'a' }, spec: { ports: [{ port: 80, targetPort: 8080 }, { name: 'https', port: 443 }] } }] as unknown as KubeObject[];
    const source = form.inputs.find(({ key }) => key === 'port')?.source;
    expect(source?.choices(services, { service: 'a' })).toEqual([
      { value: '8080', label: '80 → 8080' },
      { value: 'https', label: '443 → 443' },
    ]);
    expect(source?.choices(services, { service: 'b' })).toEqual([]);
  });
});

it('scales the chosen workload', () => {
  const form = forms['horizontalpodautoscalers.autoscaling'];
  const values = fill(form, { kind: 'DeploymentConfig', targetDeploymentConfig: 'front', max: '5' });
  expect(isComplete(form, values)).toBe(true);
  expect(form.object(values)).toMatchObject({
    spec: { scaleTargetRef: { apiVersion: 'apps.openshift.io/v1', kind: 'DeploymentConfig', name: 'front' }, minReplicas: 1, maxReplicas: 5 },
  });
  expect(isComplete(form, { ...values, max: 'many' })).toBe(false);
});
