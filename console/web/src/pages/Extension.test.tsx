import { cleanup, render, screen } from '@testing-library/react';
import { createMemoryRouter, RouterProvider } from 'react-router';
import { afterEach, expect, it, vi } from 'vitest';
import { extensionPages, type ExtensionContext, type ExtensionPage } from '../app/extensions';
import { text } from '../text/en';
import { Component } from './Extension';

afterEach(() => {
  cleanup();
  delete window.OPENSHIFT_CONSTANTS;
});

/** open shows a console address after scripts have added pages. */
function open(address: string, pages: unknown) {
  window.OPENSHIFT_CONSTANTS = { PAGES: pages as ExtensionPage[] };
  const router = createMemoryRouter(
    ['/project/:project/extension/:page', '/cluster/extension/:page'].map((path) => ({ path, Component })),
    { initialEntries: [address] },
  );
  return render(<RouterProvider router={router} />);
}

it('lets a script fill a page of a project, and notifies it when the user leaves', async () => {
  vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockResolvedValue(new Response('{"items": [{"metadata": {"name": "front"}}]}')));
  let context: ExtensionContext | undefined;
  const costs = {
    path: 'costs',
    title: 'Costs',
    render: async (element: HTMLElement, given: ExtensionContext) => {
      context = given;
      const { items } = (await given.request('GET', `/api/v1/namespaces/${given.project}/services`)) as { items: { metadata: { name: string } }[] };
      element.textContent = items.map(({ metadata }) => metadata.name).join();
    },
  };
  const { unmount } = open('/project/shop/extension/costs', [costs]);
  await screen.findByText('front');
  expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('Costs');
  expect(vi.mocked(fetch).mock.calls[0]?.[0]).toBe('/console/proxy/api/v1/namespaces/shop/services');
  expect(context?.signal.aborted).toBe(false);
  unmount();
  expect(context?.signal.aborted).toBe(true);
});

it('shows the failure of a script', async () => {
  open('/cluster/extension/costs', [{ path: 'costs', title: 'Costs', scope: 'cluster', render: () => Promise.reject(new Error('no prices')) }]);
  await screen.findByText(/no prices/);
});

it('has no page that a script has not set, or of another scope', async () => {
  open('/project/shop/extension/costs', [{ path: 'costs', title: 'Costs', scope: 'cluster', render: vi.fn() }]);
  await screen.findByText(text.failure.notFound);
});

it('ignores invalid pages', () => {
  const render = vi.fn();
  for (const pages of [undefined, {}, [null], ['costs'], [{ path: '../costs', title: 'Costs', render }], [{ path: 'costs', render }], [{ path: 'costs', title: 'Costs', render: 'alert(1)' }]]) {
    window.OPENSHIFT_CONSTANTS = { PAGES: pages as ExtensionPage[] };
    expect(extensionPages('project')).toEqual([]);
  }
});
