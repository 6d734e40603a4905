import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { MemoryRouter } from 'react-router';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { text } from '../text/en';
import { Component as Projects } from './Projects';

beforeEach(() => {
  // jsdom has no layout, so set the heights of the table and of each row.
  vi.spyOn(Element.prototype, 'clientHeight', 'get').mockReturnValue(410);
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(41);
});
afterEach(() => {
  vi.useFakeTimers();
  cleanup();
  vi.runAllTimers(); // the watch of the projects continues for a while after the page is left
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const shop = { metadata: { name: 'shop', uid: '1', resourceVersion: '1', creationTimestamp: '2026-01-02T03:04:05Z' }, status: { phase: 'Active' } };
const refusal = { kind: 'Status', status: 'Failure', reason: 'Forbidden', message: 'Ask ann for a project.' };

/** open renders the page for a user with the given verbs on the project shop. */
function open(verbs: string[], mayRequest: boolean, items: object[] = [shop]) {
  vi.stubGlobal('WebSocket', class { close() {} });
  vi.stubGlobal('fetch', (address: string, { body }: RequestInit) => {
    const reply = (answer: unknown, status = 200) => Promise.resolve(new Response(JSON.stringify(answer), { status }));
    if (address.includes('/projectrequests')) {
      return mayRequest ? reply({ kind: 'Status', status: 'Success' }) : reply(refusal, 403);
    }
    if (address.includes('rulesreviews')) {
      const resourceRules = String(body).includes('"shop"') ? [{ verbs, apiGroups: ['project.openshift.io'], resources: ['projects'] }] : [];
      return reply({ status: { resourceRules } });
    }
    return reply({ kind: 'ProjectList', metadata: { resourceVersion: '1' }, items });
  });
  render(
    <QueryClientProvider client={new QueryClient()}>
      <MemoryRouter>
        <Projects />
      </MemoryRouter>
    </QueryClientProvider>,
  );
}

const openMenu = async () => fireEvent.click(await screen.findByRole('button', { name: text.list.rowActions('shop') }));

it('shows the message of the administrator to a user who may not request projects', async () => {
  open([], false);
  await screen.findByText(refusal.message);
  expect(screen.queryByRole('button', { name: text.projects.create })).toBeNull();
  await openMenu();
  await screen.findByRole('menuitem', { name: text.projects.noAction });
  expect(screen.queryByRole('menuitem', { name: text.projects.delete })).toBeNull();
});

it('offers what the user may do', async () => {
  open(['delete'], true);
  await screen.findByRole('button', { name: text.projects.create });
  await openMenu();
  await screen.findByRole('menuitem', { name: text.projects.delete });
  expect(screen.queryByRole('menuitem', { name: text.projects.edit })).toBeNull();
});

it('renders the visible rows of thousands of projects', async () => {
  const projects = Array.from({ length: 5000 }, (_, number) => ({ ...shop, metadata: { ...shop.metadata, name: `shop-${number}`, uid: `${number}` } }));
  open([], false, projects);
  await screen.findByRole('link', { name: 'shop-0' });
  expect(screen.getByRole('grid').getAttribute('aria-rowcount')).toBe('5001');
  expect(screen.getAllByRole('link').length).toBeLessThan(100);
  fireEvent.change(screen.getByRole('textbox', { name: text.projects.filter }), { target: { value: 'shop-4999' } });
  await screen.findByRole('link', { name: 'shop-4999' });
  expect(screen.getAllByRole('link')).toHaveLength(1);
});
