import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { session, type Message } from '../api/session';
import { text } from '../text/en';
import { Expired } from './Expired';
import * as logout from './logout';

vi.mock('./logout');

/** Channel is a fake BroadcastChannel. */
class Channel {
  onmessage?: (event: { data: Message }) => void;
  close() {}
}

afterEach(cleanup);
afterEach(() => vi.unstubAllGlobals());

it.each([
  ['continues after a login of the same user', 'ann', 'active', 0],
  ['reloads the page after a login of another user', 'bob', 'expired', 1],
])('%s', async (_, next, state, reloads) => {
  let user = 'ann';
  const channels: Channel[] = [];
  vi.stubGlobal('BroadcastChannel', class extends Channel {
    constructor() {
      super();
      channels.push(this);
    }
  });
  vi.stubGlobal('fetch', (address: string) => Promise.resolve(new Response(JSON.stringify(address === '/console/session' ? { csrf: 'new' } : { metadata: { name: user } }))));
  vi.mocked(logout.reload).mockClear();
  session.set('active');
  const client = new QueryClient();
  render(
    <QueryClientProvider client={client}>
      <Expired />
    </QueryClientProvider>,
  );
  await vi.waitFor(() => expect(client.getQueryData(['user'])).toBeDefined());
  act(() => session.expire());
  await screen.findByRole('dialog', { name: new RegExp(text.connection.expiredTitle) });
  user = next;
  act(() => channels.at(-1)?.onmessage?.({ data: 'signed in' }));
  await vi.waitFor(() => expect([session.get(), vi.mocked(logout.reload).mock.calls.length]).toEqual([state, reloads]));
  expect(session.csrf).toBe('new');
});
