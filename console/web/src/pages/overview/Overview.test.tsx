import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, configure, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { MemoryRouter, Route, Routes } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import { Rights } from '../../api/rights';
import { workloadIDs } from '../../api/workloads';
import { text } from '../../text/en';
import Others from './Others';
import { Component } from './Overview';

configure({ asyncUtilTimeout: 10_000 }); // the machine can be busy
vi.setConfig({ testTimeout: 30_000 });
afterEach(cleanup);

const resources = new Map(
  ['pods', 'services', 'routes.route.openshift.io', ...workloadIDs].map((id) => {
    const [name = '', ...group] = id.split('.');
    return [id, { id, name, group: group.join('.'), version: 'v1', kind: name, namespaced: true, verbs: ['watch'], subresources: [] } as unknown as Resource];
  }),
);

const respond = (body: object, status = 200) => new Response(JSON.stringify(body), { status });
const podTable = (...names: string[]) => ({
  columnDefinitions: [{ name: 'Name' }, { name: 'Status' }],
  rows: names.map((name) => ({ cells: [name, 'Completed'], object: { metadata: { name, uid: name } } })),
  metadata: {},
});

/**
 * open shows the overview of a project without workloads. review is the response to the permission
 * review.
 */
function open(project: string, pods: object, review = respond({ status: { resourceRules: [] } })) {
  vi.stubGlobal('WebSocket', class { close() {} });
  vi.stubGlobal('fetch', (address: string) => {
    const list = address.includes('/pods?') && !address.includes('fieldSelector') ? pods : { items: [], metadata: {} };
    return Promise.resolve(address.includes('/selfsubjectrulesreviews') ? review : respond(list));
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(['discovery'], resources);
  render(
    <QueryClientProvider client={client}>
      <MemoryRouter initialEntries={[`/project/${project}`]}>
        <Routes>
          <Route path="/project/:project" element={<Component />} />
        </Routes>
      </MemoryRouter>
    </QueryClientProvider>,
  );
}

it('filters a project that only has pods without a workload', async () => {
  open('bare', podTable('shell', 'task'));
  fireEvent.change(await screen.findByRole('textbox', { name: text.overview.filter }), { target: { value: 'task' } });
  await waitFor(() => expect(screen.queryByText('shell')).toBeNull());
  expect(screen.getByText('task')).toBeTruthy();
});

it('is empty only when the permissions and the pods are loaded', () => {
  vi.stubGlobal('fetch', () => new Promise(() => {})); // the review is never loaded
  const client = new QueryClient();
  const others = (podsLoaded: boolean) => (
    <QueryClientProvider client={client}>
      <Others project="slow" resources={resources} pods={[]} podsLoaded={podsLoaded} services={[]} routes={[]} filter="" empty="nothing" hasWorkloads={false} report={() => {}} />
    </QueryClientProvider>
  );
  const { rerender } = render(others(true));
  const isEmpty = () => screen.queryByText('nothing') !== null;
  expect([isEmpty(), screen.queryByLabelText(text.loading) !== null]).toEqual([false, true]);
  act(() => client.setQueryData(['rights', 'slow'], new Rights([])) as void);
  rerender(others(false));
  expect(isEmpty()).toBe(false);
  rerender(others(true));
  expect(isEmpty()).toBe(true);
});

it('shows why the permissions cannot be loaded', async () => {
  open('no-rights', podTable(), respond({ kind: 'Status', message: 'no review' }, 400));
  await screen.findByText(/no review/);
  expect(screen.queryByText(text.overview.empty)).toBeNull();
});
