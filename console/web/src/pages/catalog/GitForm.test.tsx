import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { createMemoryRouter, RouterProvider, useLocation } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Component } from './GitForm';

afterEach(cleanup);

const t = images.git;
const python = {
  metadata: { name: 'python', namespace: 'openshift', uid: 'p', annotations: { 'openshift.io/display-name': 'Python' } },
  spec: { tags: [{ name: 'latest', annotations: { tags: 'builder,python', supports: 'python:3.11,python' } }] },
};

const rules = { status: { resourceRules: [{ verbs: ['list'], apiGroups: [''], resources: ['secrets'] }] } };
const secrets = { rows: [{ cells: ['git', 'kubernetes.io/basic-auth'] }, { cells: ['pull', 'kubernetes.io/dockerconfigjson'] }] };

/** open shows the page for a project. The server recognizes the content of every repository. */
function open(detected: object) {
  const request = vi.fn<typeof fetch>().mockImplementation((address) => {
    const path = String(address);
    const body = path.includes('/selfsubjectrulesreviews') ? rules : path.includes('/secrets') ? secrets : path.includes('/slipway/source') ? detected : path.includes('imagestreams') ? { items: path.includes('/openshift/') ? [python] : [] } : { items: [], metadata: {} };
    return Promise.resolve(new Response(JSON.stringify(body)));
  });
  vi.stubGlobal('fetch', request);
  vi.stubGlobal('WebSocket', class {});
  const Form = () => JSON.stringify(useLocation().state);
  const routes = [
    { path: '/catalog/git', Component },
    { path: '/catalog/builder/openshift/python', Component: Form },
  ];
  const router = createMemoryRouter(routes, { initialEntries: ['/catalog/git?project=shop'] });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <RouterProvider router={router} />
    </QueryClientProvider>,
  );
  return request;
}

const enter = (label: string, value: string) => fireEvent.change(screen.getByLabelText(new RegExp(label)), { target: { value } });
const find = () => screen.getByRole<HTMLButtonElement>('button', { name: t.find });

it('passes the repository to the form of the matching builder', async () => {
  const request = open({ language: 'python', dockerfile: false });
  enter(text.catalog.repository, 'https://git.example.com/me/app.git');
  enter(text.catalog.contextDir, 'web');
  fireEvent.change(await screen.findByRole('combobox', { name: t.secret }), { target: { value: (await screen.findByRole<HTMLOptionElement>('option', { name: 'git' })).value } });
  fireEvent.click(find());
  fireEvent.click(await screen.findByRole('link', { name: t.buildWith('Python') }));
  await screen.findByText('{"uri":"https://git.example.com/me/app.git","ref":"","contextDir":"web","secret":"git"}');
  const [address] = request.mock.calls.find(([path]) => String(path).includes('/slipway/source')) ?? [];
  expect(address).toBe('/console/proxy/slipway/source?namespace=shop&uri=https%3A%2F%2Fgit.example.com%2Fme%2Fapp.git&ref=&dir=web&secret=git');
});

it('reports that no builder matches', async () => {
  open({ language: '', dockerfile: false });
  enter(text.catalog.repository, 'https://git.example.com/me/app.git');
  fireEvent.click(find());
  await screen.findByText(new RegExp(t.nothing));
});

it.each(['git@example.com:me/app.git', 'ssh://git@example.com/me/app.git', 'https://ann:secret@example.com/me/app.git'])('does not send %s', (address) => {
  const request = open({});
  enter(text.catalog.repository, address);
  expect(find().disabled).toBe(true);
  fireEvent.submit(find());
  expect(request.mock.calls.some(([path]) => String(path).includes('/slipway/source'))).toBe(false);
});
