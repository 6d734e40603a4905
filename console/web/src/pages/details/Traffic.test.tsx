import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { tools } from '../../text/tools';
import Traffic from './Traffic';

afterEach(cleanup);

const resource = { id: 'routes.route.openshift.io', group: 'route.openshift.io', version: 'v1', name: 'routes', kind: 'Route', namespaced: true } as unknown as Resource;

/** version returns a version of a route with the weight of its first service. */
function version(resourceVersion: string, weight: number): LooseObject {
  const backend = (name: string, share: number) => ({ kind: 'Service', name, weight: share });
  const spec = { to: backend('front', weight), alternateBackends: [backend('preview', 100)] };
  return { apiVersion: 'route.openshift.io/v1', kind: 'Route', metadata: { name: 'shop', uid: '1', resourceVersion, creationTimestamp: '' }, spec };
}

it('does not replace weights that somebody else has set during the edit', async () => {
  const request = vi.fn<typeof fetch>().mockImplementation((address) => {
    const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }];
    const isReview = String(address).includes('rulesreviews');
    return Promise.resolve(new Response(JSON.stringify(isReview ? { status: { resourceRules: rules } } : { metadata: {}, items: [] })));
  });
  vi.stubGlobal('fetch', request);
  vi.stubGlobal('WebSocket', class {});
  const client = new QueryClient();
  const tab = (object: LooseObject) => (
    <QueryClientProvider client={client}>
      <Traffic resource={resource} project="boutique" object={object} />
    </QueryClientProvider>
  );
  const { rerender } = render(tab(version('1', 50)));
  fireEvent.click(await screen.findByRole('button', { name: tools.traffic.remove('preview') }));
  rerender(tab(version('2', 50)));
  expect(screen.queryByText(text.editor.changed)).toBeNull();
  rerender(tab(version('3', 10)));
  expect(screen.getByText(text.editor.changed)).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: text.save }));
  await waitFor(() => expect(request.mock.calls.some(([, init]) => init?.method === 'PATCH')).toBe(true));
  const [, options] = request.mock.calls.find(([, init]) => init?.method === 'PATCH') ?? [];
  expect(JSON.parse(String(options?.body))[0]).toEqual({ op: 'test', path: '/metadata/resourceVersion', value: '1' });
});
