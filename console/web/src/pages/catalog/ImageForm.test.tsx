import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Component } from './ImageForm';

afterEach(cleanup);

const t = images.deploy;
const stream = { metadata: { name: 'app', namespace: 'team', uid: 'app' }, status: { tags: [{ tag: '1', items: [{}] }] } };
const respond = (body: object, status = 200) => Promise.resolve(new Response(JSON.stringify(body), { status }));

/** open shows the form for the project shop. The user may see the project team. */
function open(streams: () => Promise<Response>) {
  vi.stubGlobal('WebSocket', class { close() {} });
  vi.stubGlobal('fetch', (address: string) => {
    if (address.includes('/imagestreamtags/')) {
      return respond({ kind: 'Status', message: 'no metadata' }, 400);
    }
    if (address.includes('/imagestreamimports')) {
      return respond({ status: { images: [{ status: {}, image: { dockerImageMetadata: { Config: { ExposedPorts: { '80/tcp': {} } } } } }] } });
    }
    if (address.includes('/team/imagestreams')) {
      return streams();
    }
    return respond({ items: address.includes('/projects') ? ['shop', 'team'].map((name) => ({ metadata: { name, uid: name } })) : [], metadata: {} });
  });
  const client = new QueryClient();
  client.setQueryData(['discovery'], new Map());
  render(
    <QueryClientProvider client={client}>
      <MemoryRouter initialEntries={['/catalog/image?project=shop&image=team/app:1']}>
        <Component />
      </MemoryRouter>
    </QueryClientProvider>,
  );
}

const chooseTeam = async () => {
  fireEvent.change(screen.getByLabelText(t.from), { target: { value: 'stream' } });
  await screen.findByRole('option', { name: 'team' });
  fireEvent.change(screen.getByLabelText(t.streamProject), { target: { value: 'team' } });
};

it('deploys a tag whose image cannot be read, and not the image of a registry with the same name', async () => {
  open(() => respond({ items: [stream], metadata: {} }));
  fireEvent.click(screen.getByRole('button', { name: t.find }));
  await screen.findByText(t.found('80/TCP'));
  await chooseTeam();
  await screen.findByText(text.catalog.foreign('team'));
  const create = () => screen.getByRole<HTMLButtonElement>('button', { name: text.create });
  await screen.findByRole('option', { name: 'app:1' });
  expect(create().disabled).toBe(true);
  fireEvent.change(screen.getByLabelText(new RegExp(t.tag)), { target: { value: 'app:1' } });
  await screen.findByText(t.unreadable('no metadata'));
  expect(screen.queryByText(t.found('80/TCP'))).toBeNull();
  expect(create().disabled).toBe(false);
});

it('shows why the image streams cannot be read', async () => {
  open(() => respond({ kind: 'Status', message: 'no streams' }, 403));
  await chooseTeam();
  await screen.findByText(/no streams/);
});
