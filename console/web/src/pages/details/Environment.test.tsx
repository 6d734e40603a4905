import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import Environment from './Environment';

afterEach(cleanup);

const resource = { id: 'deployments.apps', group: 'apps', version: 'v1', name: 'deployments', kind: 'Deployment', namespaced: true } as unknown as Resource;

/** version returns a version of a deployment with variables that have the given values. */
function version(resourceVersion: string, ...values: string[]): LooseObject {
  const env = values.map((value, index) => ({ name: `V${index + 1}`, value }));
  const spec = { template: { spec: { containers: [{ name: 'web', env }] } } };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'shop', uid: '1', resourceVersion, creationTimestamp: '' }, spec };
}

/**
 * open renders the tab of a deployment. The server responds to changes with the given responses.
 */
async function open(object: LooseObject, ...responses: Response[]) {
  vi.stubGlobal('fetch', (address: string, { method }: RequestInit) => {
    const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }];
    const answer = address.includes('rulesreviews') ? { status: { resourceRules: rules } } : {};
    return Promise.resolve((method === 'PATCH' && responses.shift()) || new Response(JSON.stringify(answer)));
  });
  const client = new QueryClient();
  const tab = (shown: LooseObject) => (
    <QueryClientProvider client={client}>
      <Environment resource={resource} project="boutique" object={shown} />
    </QueryClientProvider>
  );
  const { rerender } = render(tab(object));
  await screen.findByRole('button', { name: text.environment.remove(1) });
  return { show: (shown: LooseObject) => rerender(tab(shown)) };
}

const value = (n: number) => screen.getByLabelText<HTMLInputElement>(text.environment.value(n));

it('keeps the focus when the user removes variables', async () => {
  await open(version('1', 'a', 'b'));
  for (const n of [2, 1]) {
    const button = screen.getByRole('button', { name: text.environment.remove(n) });
    button.focus();
    fireEvent.click(button);
    expect(document.activeElement).toBe(screen.getByLabelText(text.environment.name(1)));
  }
});

it('continues from the saved version before the watch shows it', async () => {
  const { show } = await open(version('1', 'a'), new Response(JSON.stringify(version('2', 'b'))));
  fireEvent.change(value(1), { target: { value: 'b' } });
  fireEvent.click(screen.getByRole('button', { name: text.save }));
  await screen.findByText(text.editor.saved);
  expect(value(1).value).toBe('b');
  fireEvent.change(value(1), { target: { value: 'c' } });
  show(version('2', 'b'));
  expect(screen.queryByText(text.editor.changed)).toBeNull();
  expect(value(1).value).toBe('c');
});

it('hides a rejection when the user discards the edit', async () => {
  await open(version('1', 'a'), new Response('not allowed', { status: 403 }));
  fireEvent.change(value(1), { target: { value: 'b' } });
  fireEvent.click(screen.getByRole('button', { name: text.save }));
  await screen.findByText('not allowed');
  fireEvent.click(screen.getByRole('button', { name: text.editor.reload }));
  expect(screen.queryByText('not allowed')).toBeNull();
  expect(value(1).value).toBe('a');
});
