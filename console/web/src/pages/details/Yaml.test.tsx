import { EditorView } from '@codemirror/view';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { Resource } from '../../api/discovery';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';

beforeAll(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }));
  Range.prototype.getClientRects = () => [] as unknown as DOMRectList; // jsdom has no layout
});
afterEach(cleanup);

const resource = { id: 'things.shop', group: 'shop', version: 'v1', name: 'things', kind: 'Thing', namespaced: true } as unknown as Resource;

/** version returns a version of an object with a size and a status. */
function version(resourceVersion: string, size: number, ready: number): LooseObject {
  return { apiVersion: 'shop/v1', kind: 'Thing', metadata: { name: 'a', uid: '1', resourceVersion, creationTimestamp: '' }, spec: { size }, status: { ready } };
}

/** open renders the tab of an object that has the given version on the server. */
async function open(object: LooseObject, stored: LooseObject) {
  vi.stubGlobal('fetch', (address: string, { method, body }: RequestInit) => {
    if (method === 'PUT') {
      const sent = JSON.parse(String(body)) as LooseObject;
      const isCurrent = sent.metadata.resourceVersion === stored.metadata.resourceVersion;
      const conflict = { kind: 'Status', reason: 'Conflict', message: '', details: { kind: 'things', name: 'a' } };
      const next = { ...sent, metadata: { ...sent.metadata, resourceVersion: '9' } };
      return Promise.resolve(isCurrent ? new Response(JSON.stringify(next)) : new Response(JSON.stringify(conflict), { status: 409 }));
    }
    const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }];
    const answer = address.includes('rulesreviews') ? { status: { resourceRules: rules } } : address.endsWith('/things/a') ? stored : {};
    return Promise.resolve(new Response(JSON.stringify(answer)));
  });
  const { default: Yaml } = await import('./Yaml');
  const client = new QueryClient();
  const tab = (shown: LooseObject) => (
    <QueryClientProvider client={client}>
      <Yaml resource={resource} project="boutique" object={shown} />
    </QueryClientProvider>
  );
  const { container, rerender } = render(tab(object));
  const save = await screen.findByRole<HTMLButtonElement>('button', { name: text.editor.save });
  const root = container.querySelector('.console-editor')?.shadowRoot;
  const editor = EditorView.findFromDOM(root?.querySelector('.cm-editor') as HTMLElement) as EditorView;
  const source = () => editor.state.doc.toString();
  const type = (before: string, after: string) => {
    const from = source().indexOf(before);
    act(() => editor.dispatch({ changes: { from, to: from + before.length, insert: after } }));
  };
  return { save: () => fireEvent.click(save), type, source, show: (shown: LooseObject) => rerender(tab(shown)) };
}

it('saves an edit although the status has changed on the server', async () => {
  const { save, type, source } = await open(version('1', 1, 0), version('2', 1, 1));
  type('size: 1', 'size: 5');
  save();
  await screen.findByText(text.editor.saved);
  await waitFor(() => expect(source()).toContain('resourceVersion: "9"'));
  expect(source()).toContain('size: 5');
  expect(source()).toContain('ready: 1');
});

it('rejects an edit of an object that has changed, and shows what has changed', async () => {
  const { save, type, source, show } = await open(version('1', 1, 0), version('2', 3, 0));
  type('size: 1', 'size: 5');
  save();
  await screen.findByText(text.failure.conflict);
  show(version('2', 3, 0));
  await screen.findByText(text.editor.changed);
  const changes = screen.getByRole('group', { name: text.editor.changes });
  expect(changes.textContent).toContain('+   size: 3');
  expect(changes.closest('[aria-live]')).toBeNull(); // a live region would be read aloud completely
  const toggle = screen.getByRole('button', { name: text.editor.changes });
  fireEvent.click(toggle);
  expect(toggle.getAttribute('aria-expanded')).toBe('false');
  fireEvent.click(toggle);
  expect(toggle.getAttribute('aria-expanded')).toBe('true');
  expect(source()).toContain('size: 5');
});
