import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { MemoryRouter, Route, Routes } from 'react-router';
import { afterEach, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import { Component } from './Details';

afterEach(cleanup);

const pods = { id: 'pods', name: 'pods', group: '', version: 'v1', kind: 'Pod', namespaced: true, verbs: ['watch'], subresources: [] } as unknown as Resource;
const pod = { kind: 'Pod', metadata: { name: 'front', namespace: 'shop', uid: 'front', resourceVersion: '1' }, spec: { containers: [] }, status: {} };

it('shows why a tab cannot be shown if the permissions cannot be loaded', { timeout: 30_000 }, async () => {
  vi.stubGlobal('WebSocket', class { close() {} });
  vi.stubGlobal('fetch', (address: string) => {
    const failure = { kind: 'Status', message: 'no review' };
    return Promise.resolve(address.includes('/selfsubjectrulesreviews') ? new Response(JSON.stringify(failure), { status: 400 }) : new Response(JSON.stringify({ items: [pod], metadata: {} })));
  });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  client.setQueryData(['discovery'], new Map([['pods', pods]]));
  render(
    <QueryClientProvider client={client}>
      <MemoryRouter initialEntries={['/project/shop/pods/front/logs']}>
        <Routes>
          <Route path="/project/:project/:resource/:name/:tab" element={<Component />} />
        </Routes>
      </MemoryRouter>
    </QueryClientProvider>,
  );
  await screen.findByText(/no review/, {}, { timeout: 10_000 });
});
