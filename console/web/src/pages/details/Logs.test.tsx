import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { afterEach, expect, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import type { LooseObject } from '../../api/types';
import { logs } from '../../text/logs';
import Logs from './Logs';

afterEach(cleanup);

const resource = { id: 'pods', name: 'pods', group: '', version: 'v1', kind: 'Pod', namespaced: true, subresources: [], verbs: [], singular: 'pod' } as Resource;
const pod = {
  kind: 'Pod', metadata: { name: 'front', namespace: 'a' }, spec: { containers: [{ name: 'web' }] }, status: { containerStatuses: [{ name: 'web', state: { running: {} } }] },
} as unknown as LooseObject;

it('reads the lines of a period, with their times', async () => {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} });
  Element.prototype.scrollTo = () => {};
  const request = vi.fn<typeof fetch>().mockImplementation(() => Promise.resolve(new Response('{}')));
  vi.stubGlobal('fetch', request);
  const queries = () => request.mock.calls.map(([address]) => String(address)).filter((address) => address.includes('/log?')).map((address) => new URLSearchParams(address.split('?')[1]));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Logs resource={resource} project="a" object={pod} />
    </QueryClientProvider>,
  );
  await waitFor(() => expect(queries()).toHaveLength(1));
  expect([...(queries()[0]?.keys() ?? [])]).toEqual(['follow', 'tailLines', 'container', 'timestamps']);
  fireEvent.change(screen.getByRole('combobox', { name: logs.since }), { target: { value: '3600' } });
  await waitFor(() => expect(queries()[1]?.get('sinceSeconds')).toBe('3600'));
  fireEvent.click(screen.getByRole('checkbox', { name: logs.times }));
  await waitFor(() => expect(queries()).toHaveLength(3));
});
