import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { LooseObject } from '../../../api/types';
import { attach } from '../../../text/attach';
import { text } from '../../../text/en';
import { isComplete } from '../../forms/model';
import { attachTo } from './attachment';
import Attach from './Attach';
import { expand } from './Expand';

afterEach(cleanup);

const object = (kind: string, spec: object) => ({ apiVersion: 'v1', kind, metadata: { name: 'front', namespace: 'a', generation: 2, resourceVersion: '7' }, spec }) as unknown as LooseObject;
const workload = (pod: object) => object('Deployment', { template: { spec: pod } });
const bare = workload({ containers: [{ name: 'web' }, { name: 'side' }] });
const edit = attachTo();
const operations = (of: LooseObject, values: Record<string, string>) => edit.operations(of, { ...edit.values(of), ...values });
const isValid = (values: Record<string, string>) => edit.sections(bare).every((section) => isComplete(section, { ...edit.values(bare), ...values }));
const containers = '/spec/template/spec/containers';

describe('Storage and configuration', () => {
  it('of a claim is a volume of all containers', () => {
    const mount = { name: 'data', mountPath: '/data', readOnly: true };
    expect(operations(bare, { claim: 'data', path: '/data', access: 'readOnly' })).toEqual([
      { op: 'add', path: '/spec/template/spec/volumes', value: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
      { op: 'add', path: `${containers}/0/volumeMounts`, value: [mount] },
      { op: 'add', path: `${containers}/1/volumeMounts`, value: [mount] },
    ]);
  });

  it('uses an existing volume, and no name twice', () => {
    const volumes = [{ name: 'v', secret: { secretName: 'keys', defaultMode: 420 } }, { name: 'app-config', emptyDir: {} }];
    const of = workload({ volumes, containers: [{ name: 'web', volumeMounts: [{ name: 'v', mountPath: '/x' }] }] });
    expect(operations(of, { source: 'secret', secret: 'keys', path: '/keys', container: 'web' })).toEqual([
      { op: 'add', path: `${containers}/0/volumeMounts/-`, value: { name: 'v', mountPath: '/keys' } },
    ]);
    expect(operations(of, { source: 'configMap', configMap: 'app.config', path: '/etc/app' })[0]).toEqual({
      op: 'add',
      path: '/spec/template/spec/volumes/-',
      value: { name: 'app-config-2', configMap: { name: 'app.config' } },
    });
  });

  it('does not use a volume that shows only some keys', () => {
    const of = workload({ volumes: [{ name: 'v', secret: { secretName: 'keys', items: [{ key: 'a', path: 'a' }] } }], containers: [{ name: 'web' }] });
    expect(operations(of, { source: 'secret', secret: 'keys', path: '/keys' })).toHaveLength(2);
  });

  it('becomes environment variables', () => {
    const of = workload({ containers: [{ name: 'web', envFrom: [{ secretRef: { name: 'old' } }] }, { name: 'side' }] });
    expect(operations(of, { source: 'configMap', configMap: 'settings', use: 'environment', prefix: 'APP_' })).toEqual([
      { op: 'add', path: `${containers}/0/envFrom/-`, value: { prefix: 'APP_', configMapRef: { name: 'settings' } } },
      { op: 'add', path: `${containers}/1/envFrom`, value: [{ prefix: 'APP_', configMapRef: { name: 'settings' } }] },
    ]);
  });

  it.each([
    [{}, false],
    [{ claim: 'data', path: 'data' }, false],
    [{ claim: 'data', path: '/a:b' }, false],
    [{ claim: 'data', path: '/data' }, true],
    [{ source: 'secret', secret: 'keys', use: 'environment' }, true],
    [{ source: 'secret', secret: 'keys', use: 'environment', prefix: '1-' }, false],
  ])('is checked: %o', (values, expected) => {
    expect(isValid(values as Record<string, string>)).toBe(expected);
  });
});

it('expands a claim, and never shrinks it', () => {
  const claim = object('PersistentVolumeClaim', { resources: { requests: { storage: '1Gi' } } });
  const valid = (size: string) => expand.sections(claim).every((section) => isComplete(section, { size }));
  expect(['1Gi', '1025Mi', '1Mi', 'big', ''].map(valid)).toEqual([true, true, false, false, false]);
  expect(expand.operations(claim, { size: '2Gi' })).toEqual([{ op: 'add', path: '/spec/resources/requests/storage', value: '2Gi' }]);
  expect(expand.operations(claim, expand.values(claim))).toEqual([]);
});

it('offers the claims of the project, and stores the choice', async () => {
  const request = vi.fn<typeof fetch>().mockImplementation((address) =>
    Promise.resolve(new Response(JSON.stringify(String(address).endsWith('persistentvolumeclaims') ? { items: [{ metadata: { name: 'data' } }] } : {}))),
  );
  vi.stubGlobal('fetch', request);
  const close = vi.fn();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Attach object={bare} path="/apis/apps/v1/namespaces/a/deployments/front" close={close} />
    </QueryClientProvider>,
  );
  await screen.findByRole('option', { name: 'data' });
  fireEvent.change(screen.getByLabelText(new RegExp(`^${attach.sources.claim}`)), { target: { value: 'data' } });
  fireEvent.change(screen.getByLabelText(new RegExp(`^${attach.path}`)), { target: { value: '/data' } });
  fireEvent.change(screen.getByLabelText(new RegExp(`^${attach.containers}`)), { target: { value: 'side' } });
  fireEvent.click(screen.getByRole('button', { name: text.save }));
  await waitFor(() => expect(close).toHaveBeenCalled());
  const [, options] = request.mock.calls.find(([, init]) => init?.method === 'PATCH') ?? [];
  expect(JSON.parse(String(options?.body))).toMatchObject([{ op: 'test' }, { op: 'add' }, { path: `${containers}/1/volumeMounts`, value: [{ mountPath: '/data' }] }]);
});
