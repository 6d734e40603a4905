import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, configure, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Component } from './ImageForm';

configure({ asyncUtilTimeout: 10_000 }); // the machine can be busy
vi.setConfig({ testTimeout: 30_000 });
afterEach(cleanup);

const t = images.deploy;
const stream = { metadata: { name: 'app', namespace: 'team', uid: 'app' }, status: { tags: [{ tag: '1', items: [{}] }] } };
const respond = (body: object, status = 200) => Promise.resolve(new Response(JSON.stringify(body), { status }));

/** open shows the form for the project shop. The user may see the projects team and locked. */
function open() {
  vi.stubGlobal('WebSocket', class { close() {} });
  vi.stubGlobal('fetch', (address: string) => {
    if (address.includes('/imagestreamtags/')) {
      return respond({ kind: 'Status', message: 'no metadata' }, 400);
    }
    if (address.includes('/imagestreamimports')) {
      return respond({ status: { images: [{ status: {}, image: { dockerImageMetadata: { Config: { ExposedPorts: { '80/tcp': {} } } } } }] } });
    }
    if (address.includes('/locked/imagestreams')) {
      return respond({ kind: 'Status', message: 'no streams' }, 403);
    }
    if (address.includes('/team/imagestreams')) {
      return respond({ items: [stream], metadata: {} });
    }
    return respond({ items: address.includes('/projects') ? ['shop', 'team', 'locked'].map((name) => ({ metadata: { name, uid: name } })) : [], metadata: {} });
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

const choose = async (project: string) => {
  fireEvent.change(screen.getByLabelText(t.from), { target: { value: 'stream' } });
  await screen.findAllByRole('option', { name: project });
  fireEvent.change(screen.getByLabelText(t.streamProject), { target: { value: project } });
};

it('deploys a tag whose image cannot be read, and not the image of a registry with the same name', async () => {
  open();
  fireEvent.click(screen.getByRole('button', { name: t.find }));
  await screen.findByText(t.found('80/TCP'));
  await choose('team');
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
  open();
  await choose('locked');
  await screen.findByText(/no streams/);
});
