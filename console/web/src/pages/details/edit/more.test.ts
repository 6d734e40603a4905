import { describe, expect, it } from 'vitest';
import type { LooseObject } from '../../../api/types';
import { isComplete } from '../../forms/model';
import { autoscaler } from './Autoscaler';
import { data } from './Data';
import type { Edit } from './edit';
import { route } from './Route';
import { triggers } from './Triggers';

const object = (kind: string, spec: object) => ({ apiVersion: 'v1', kind, metadata: { name: 'front', namespace: 'a', resourceVersion: '7' }, spec }) as unknown as LooseObject;
const operations = (edit: Edit, of: LooseObject, values: Record<string, string>) => JSON.parse(JSON.stringify(edit.operations(of, { ...edit.values(of), ...values }))) as object[];
const isValid = (edit: Edit, of: LooseObject, values: Record<string, string>) => edit.sections(of).every((section) => isComplete(section, { ...edit.values(of), ...values }));

describe('A route', () => {
  const tls = { termination: 'edge', certificate: 'C', key: 'K', externalCertificate: 'other' };
  const secure = object('Route', { host: 'h', path: '/a', to: { name: 'front' }, port: { targetPort: 'http' }, tls });

  it('keeps untouched fields', () => {
    expect(operations(route, secure, {})).toEqual([]);
  });

  it('gets another port and path', () => {
    expect(operations(route, secure, { port: '8080', path: '' })).toEqual([
      { op: 'remove', path: '/spec/path' },
      { op: 'add', path: '/spec/port', value: { targetPort: 8080 } },
    ]);
  });

  it('has only the certificates of its termination', () => {
    expect(operations(route, secure, { termination: 'passthrough' })).toEqual([
      { op: 'remove', path: '/spec/path' },
      { op: 'add', path: '/spec/tls', value: { externalCertificate: 'other', termination: 'passthrough' } },
    ]);
    expect(operations(route, secure, { termination: '' })).toEqual([{ op: 'remove', path: '/spec/tls' }]);
    const open = object('Route', { host: 'h', to: { name: 'front' } });
    expect(operations(route, open, { termination: 'edge', insecure: 'Redirect' })).toEqual([
      { op: 'add', path: '/spec/tls', value: { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' } },
    ]);
    expect(isValid(route, open, { path: 'a' })).toBe(false);
  });
});

describe('An autoscaler', () => {
  const usage = (averageUtilization: number) => ({ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } });
  const memory = { type: 'Resource', resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } } };
  const scaler = (...metrics: object[]) => object('HorizontalPodAutoscaler', { minReplicas: 1, maxReplicas: 3, metrics });

  it('gets other limits, and keeps its other metrics', () => {
    expect(operations(autoscaler, scaler(usage(80), memory), { max: '5', cpu: '50' })).toEqual([
      { op: 'add', path: '/spec/maxReplicas', value: 5 },
      { op: 'add', path: '/spec/metrics', value: [memory, usage(50)] },
    ]);
    expect(operations(autoscaler, scaler(usage(80)), {})).toEqual([]);
  });

  it('needs a metric', () => {
    expect([isValid(autoscaler, scaler(usage(80)), { cpu: '' }), isValid(autoscaler, scaler(memory), {}), isValid(autoscaler, scaler(memory), { min: '0' })]).toEqual([false, true, false]);
  });
});

describe('The data', () => {
  const of = (kind: string, values: object) => ({ ...object(kind, {}), data: values }) as unknown as LooseObject;

  it('of a secret is text in the form, and encoded in the secret', () => {
    const secret = of('Secret', { password: 'Z3LDvMOfZQ==', key: '/w==' });
    expect(data.values(secret)).toEqual({ pairs: '[["password","grüße"]]' });
    expect(operations(data, secret, {})).toEqual([]);
    expect(operations(data, secret, { pairs: '[["password","ä"],["user","ann"]]' })).toEqual([{ op: 'add', path: '/data', value: { key: '/w==', password: 'w6Q=', user: 'YW5u' } }]);
    expect([isValid(data, secret, { pairs: '[["key","a"]]' }), isValid(data, secret, { pairs: '[["key2","a"]]' })]).toEqual([false, true]);
  });

  it('of a config map keeps lines', () => {
    const map = of('ConfigMap', { 'app.conf': 'a=1\nb=2\n' });
    expect(operations(data, map, { pairs: '[["app.conf","a=1\\n"]]' })).toEqual([{ op: 'add', path: '/data', value: { 'app.conf': 'a=1\n' } }]);
    expect(isValid(data, map, { pairs: '[["a b","1"]]' })).toBe(false);
  });
});

describe('The triggers of a deployment', () => {
  const change = (name: string, ...containerNames: string[]) => ({ type: 'ImageChange', imageChangeParams: { automatic: true, containerNames, from: { kind: 'ImageStreamTag', name } } });
  const config = object('DeploymentConfig', {
    triggers: [{ type: 'ConfigChange' }, { ...change('app:latest', 'web', 'side') }],
    template: { spec: { containers: [{ name: 'web' }, { name: 'side' }] } },
  });
  const written = (values: Record<string, string>) => (operations(triggers, config, values)[0] as { value: unknown }).value;

  it('change for only one container', () => {
    expect(written({ tag0: 'other/app:1', automatic0: 'no' })).toEqual([
      { type: 'ConfigChange' },
      change('app:latest', 'side'),
      { type: 'ImageChange', imageChangeParams: { automatic: false, containerNames: ['web'], from: { kind: 'ImageStreamTag', name: 'app:1', namespace: 'other' } } },
    ]);
  });

  it('end', () => {
    expect(written({ config: 'no', tag0: '', tag1: '' })).toEqual([]);
  });

  it('are checked', () => {
    expect(['app', 'a/b/c:1', 'app:1', 'x/app:1'].map((tag0) => isValid(triggers, config, { tag0 }))).toEqual([false, false, true, true]);
  });
});
