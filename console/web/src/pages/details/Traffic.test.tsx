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

/** version returns a version of a route in which the first service has the given weight. */
function version(resourceVersion: string, weight: number): LooseObject {
  const backend = (name: string, share: number) => ({ kind: 'Service', name, weight: share });
  const spec = { to: backend('front', weight), alternateBackends: [backend('preview', 100)] };
  return { apiVersion: 'route.openshift.io/v1', kind: 'Route', metadata: { name: 'shop', uid: '1', resourceVersion, creationTimestamp: '' }, spec };
}

/** open renders the tab of a route. The server responds to changes with the given responses. */
async function open(object: LooseObject, ...responses: Response[]) {
  const request = vi.fn<typeof fetch>().mockImplementation((address, init) => {
    const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }];
    const isReview = String(address).includes('rulesreviews');
    const answer = isReview ? { status: { resourceRules: rules } } : { metadata: {}, items: [] };
    return Promise.resolve((init?.method === 'PATCH' && responses.shift()) || new Response(JSON.stringify(answer)));
  });
  vi.stubGlobal('fetch', request);
  vi.stubGlobal('WebSocket', class {});
  const client = new QueryClient();
  const tab = (shown: LooseObject) => (
    <QueryClientProvider client={client}>
      <Traffic resource={resource} project="boutique" object={shown} />
    </QueryClientProvider>
  );
  const { rerender } = render(tab(object));
  await removal();
  const patches = () => request.mock.calls.filter(([, init]) => init?.method === 'PATCH').map(([, init]) => JSON.parse(String(init?.body)) as unknown[]);
  return { patches, show: (shown: LooseObject) => rerender(tab(shown)) };
}

const removal = () => screen.findByRole('button', { name: tools.traffic.remove('preview') });
const save = () => fireEvent.click(screen.getByRole('button', { name: text.save }));

it('does not replace weights that somebody else has set during the edit', async () => {
  const { patches, show } = await open(version('1', 50), new Response(JSON.stringify(version('4', 50))));
  fireEvent.click(await removal());
  show(version('2', 50));
  expect(screen.queryByText(text.editor.changed)).toBeNull();
  show(version('3', 10));
  expect(screen.getByText(text.editor.changed)).toBeTruthy();
  save();
  await waitFor(() => expect(patches()).toHaveLength(1));
  expect(patches()[0]?.[0]).toEqual({ op: 'test', path: '/metadata/resourceVersion', value: '1' });
});

it('continues from the saved version before the watch shows it', async () => {
  const { patches, show } = await open(version('1', 50), new Response(JSON.stringify(version('2', 20))), new Response(JSON.stringify(version('3', 20))));
  fireEvent.click(await removal());
  save();
  await screen.findByText(text.editor.saved);
  fireEvent.click(await removal());
  show(version('2', 20));
  expect(screen.queryByText(text.editor.changed)).toBeNull();
  save();
  await waitFor(() => expect(patches()).toHaveLength(2));
  expect(patches()[1]?.[0]).toEqual({ op: 'test', path: '/metadata/resourceVersion', value: '2' });
});

it('hides a rejection when the user discards the edit', async () => {
  await open(version('1', 50), new Response('not allowed', { status: 403 }));
  fireEvent.click(await removal());
  save();
  await screen.findByText('not allowed');
  fireEvent.click(screen.getByRole('button', { name: text.editor.reload }));
  expect(screen.queryByText('not allowed')).toBeNull();
});
