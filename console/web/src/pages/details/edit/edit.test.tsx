import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import { text } from '../../../text/en';
import { isComplete } from '../../forms/model';
import type { Edit } from './edit';
import Health, { health } from './Health';
import { lifecycle } from './Lifecycle';
import { resources } from './Resources';
import { strategy } from './Strategy';

afterEach(cleanup);

const probe = { httpGet: { path: '/ok', port: 8080, scheme: 'HTTP', httpHeaders: [{ name: 'A', value: '1' }] }, periodSeconds: 5, terminationGracePeriodSeconds: 3 };
const web = { name: 'web', readinessProbe: probe, resources: { limits: { 'example.com/gpu': '1', memory: '1Gi' } } };
const side = { name: 'side', lifecycle: { preStop: { sleep: { seconds: 2 } }, stopSignal: 'SIGINT' } };
const object = (kind: string, spec: object) => ({ apiVersion: 'v1', kind, metadata: { name: 'front', namespace: 'a', generation: 2, resourceVersion: '7' }, spec }) as unknown as LooseObject;
const deployment = object('Deployment', { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 1 } }, template: { spec: { containers: [web, side] } } });
const at = (index: number, rest: string) => `/spec/template/spec/containers/${index}/${rest}`;

const operations = (edit: Edit, of: LooseObject, values: Record<string, string>) => JSON.parse(JSON.stringify(edit.operations(of, { ...edit.values(of), ...values }))) as object[];
const isValid = (edit: Edit, of: LooseObject, values: Record<string, string>) => edit.sections(of).every((section) => isComplete(section, { ...edit.values(of), ...values }));

it.each([health, lifecycle, resources, strategy])('does not change untouched fields: $title', (edit) => {
  expect(operations(edit, deployment, {})).toEqual([]);
  expect(isValid(edit, deployment, {})).toBe(true);
});

describe('Health checks', () => {
  it('keep the headers of a request', () => {
    expect(operations(health, deployment, { 'c0-readinessProbe-path': '/ready', 'c0-readinessProbe-failureThreshold': '2' })).toEqual([
      { op: 'add', path: at(0, 'readinessProbe'), value: { ...probe, httpGet: { ...probe.httpGet, path: '/ready' }, failureThreshold: 2 } },
    ]);
  });

  it('have only the fields of the type', () => {
    expect(operations(health, deployment, { 'c0-readinessProbe-action': 'tcpSocket', 'c0-readinessProbe-port': 'http', 'c0-readinessProbe-periodSeconds': '' })).toEqual([
      { op: 'add', path: at(0, 'readinessProbe'), value: { tcpSocket: { port: 'http' }, terminationGracePeriodSeconds: 3 } },
    ]);
    expect(operations(health, deployment, { 'c1-livenessProbe-action': 'exec', 'c1-livenessProbe-command': '["sh","-c","a\\nb"]' })).toEqual([
      { op: 'add', path: at(1, 'livenessProbe'), value: { exec: { command: ['sh', '-c', 'a\nb'] } } },
    ]);
    expect(operations(health, deployment, { 'c0-readinessProbe-action': '' })).toEqual([{ op: 'remove', path: at(0, 'readinessProbe') }]);
  });

  it.each([
    [{ port: '70000' }, false],
    [{ port: 'Not a port' }, false],
    [{ port: '' }, false],
    [{ path: 'ok' }, false],
    [{ periodSeconds: '0' }, false],
    [{ initialDelaySeconds: '0', port: 'web-1' }, true],
    [{ action: 'exec' }, false],
    [{ action: 'exec', command: '[""]' }, false],
    [{ action: 'exec', command: '["true"]' }, true],
  ])('are checked: %o', (values, expected) => {
    const named = Object.fromEntries(Object.entries(values).map(([key, value]) => [`c0-readinessProbe-${key}`, value]));
    expect(isValid(health, deployment, named)).toBe(expected);
  });
});

it('adds and removes lifecycle hooks', () => {
  expect(operations(lifecycle, deployment, { 'c0-postStart-action': 'exec', 'c0-postStart-command': '["touch","/x"]', 'c1-preStop-action': '' })).toEqual([
    { op: 'add', path: at(0, 'lifecycle'), value: {} },
    { op: 'add', path: at(0, 'lifecycle/postStart'), value: { exec: { command: ['touch', '/x'] } } },
    { op: 'remove', path: at(1, 'lifecycle/preStop') },
  ]);
});

it('keeps resources without a field, and rejects requests over the limit', () => {
  expect(operations(resources, deployment, { 'c0-resources-requests.cpu': '100m', 'c0-resources-limits.memory': '' })).toEqual([
    { op: 'add', path: at(0, 'resources'), value: { requests: { cpu: '100m' }, limits: { 'example.com/gpu': '1' } } },
  ]);
  expect(isValid(resources, deployment, { 'c0-resources-requests.memory': '2Gi' })).toBe(false);
  expect(isValid(resources, deployment, { 'c0-resources-requests.memory': '1024Mi' })).toBe(true);
  expect(isValid(resources, deployment, { 'c0-resources-requests.cpu': 'much' })).toBe(false);
});

describe('The strategy', () => {
  const pre = { failurePolicy: 'Abort', execNewPod: { containerName: 'web', command: ['true'], env: [{ name: 'A', value: '1' }, { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] } };
  const config = object('DeploymentConfig', {
    strategy: { type: 'Rolling', rollingParams: { timeoutSeconds: 600, maxSurge: '25%', maxUnavailable: '25%', pre }, labels: { a: 'b' }, activeDeadlineSeconds: 21600 },
    template: { spec: { containers: [web], volumes: [{ name: 'data' }] } },
  });

  it('of a deployment has amounts and deadlines', () => {
    expect(operations(strategy, deployment, { maxSurge: '3', maxUnavailable: '50%', progressDeadlineSeconds: '90' })).toEqual([
      { op: 'add', path: '/spec/strategy', value: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3, maxUnavailable: '50%' } } },
      { op: 'add', path: '/spec/progressDeadlineSeconds', value: 90 },
    ]);
    expect(operations(strategy, deployment, { type: 'Recreate' })).toEqual([{ op: 'add', path: '/spec/strategy', value: { type: 'Recreate' } }]);
    expect(isValid(strategy, deployment, { maxSurge: '0', maxUnavailable: '0%' })).toBe(false);
    expect(isValid(strategy, deployment, { maxSurge: 'some' })).toBe(false);
  });

  it('of a configuration takes its hooks to another type', () => {
    expect(operations(strategy, config, { type: 'Recreate', 'mid-hook': 'tagImages', 'mid-tag': 'app:old', 'mid-policy': 'Ignore' })).toEqual([
      {
        op: 'add',
        path: '/spec/strategy',
        value: {
          type: 'Recreate',
          labels: { a: 'b' },
          activeDeadlineSeconds: 21600,
          recreateParams: {
            timeoutSeconds: 600,
            pre: { ...pre, execNewPod: { ...pre.execNewPod, volumes: [] } },
            mid: { failurePolicy: 'Ignore', tagImages: [{ containerName: 'web', to: { kind: 'ImageStreamTag', name: 'app:old' } }] },
          },
        },
      },
    ]);
  });

  it('keeps variables that refer to other objects', () => {
    const [operation] = operations(strategy, config, { 'pre-env': '[["A","2"]]' }) as { value: { rollingParams: { pre: typeof pre } } }[];
    expect(operation?.value.rollingParams.pre.execNewPod.env).toEqual([pre.execNewPod.env[1], { name: 'A', value: '2' }]);
  });

  it('checks hooks', () => {
    expect(isValid(strategy, config, { 'post-hook': 'execNewPod' })).toBe(false);
    expect(isValid(strategy, config, { 'post-hook': 'tagImages', 'post-tag': 'app' })).toBe(false);
    expect(isValid(strategy, config, { 'pre-volumes': '["other"]' })).toBe(false);
    // The mid hook is ignored, because a Rolling strategy does not have one.
    expect(isValid(strategy, config, { 'mid-hook': 'execNewPod' })).toBe(true);
    expect(isValid(strategy, config, { type: 'Custom' })).toBe(false);
  });
});

it('shows errors, and stores a valid value with the keyboard', async () => {
  const request = vi.fn<typeof fetch>().mockResolvedValue(new Response('{}'));
  vi.stubGlobal('fetch', request);
  const close = vi.fn();
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Health object={deployment} path="/apis/apps/v1/namespaces/a/deployments/front" close={close} />
    </QueryClientProvider>,
  );
  const save = screen.getByRole<HTMLButtonElement>('button', { name: text.save });
  expect(save.disabled).toBe(true);
  const section = within(screen.getByRole('group', { name: edits.health.probes.readinessProbe('web') }));
  const port = section.getByLabelText<HTMLInputElement>(/^Port/);
  fireEvent.change(port, { target: { value: '0' } });
  screen.getByText(edits.handler.portInvalid);
  fireEvent.submit(port);
  fireEvent.change(port, { target: { value: '' } });
  screen.getByText(text.catalog.required);
  expect(request).not.toHaveBeenCalled();
  fireEvent.change(port, { target: { value: '9090' } });
  fireEvent.submit(port);
  await waitFor(() => expect(close).toHaveBeenCalled());
  const [, options] = request.mock.calls[0] ?? [];
  expect(JSON.parse(String(options?.body))).toMatchObject([{ op: 'test', path: '/metadata/generation', value: 2 }, { op: 'add', value: { httpGet: { port: 9090 } } }]);
});
