import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import type { Project } from '../api/projects';
import { text } from '../text/en';
import EditProject from './EditProject';

afterEach(cleanup);

const project = { metadata: { name: 'shop', annotations: { 'openshift.io/display-name': 'Shop' } } } as unknown as Project;

/**
 * open renders the dialog for a user with the given verbs on projects, and returns the requests
 * that the dialog sends.
 */
function open(verbs: string[], close: () => void) {
  const request = vi.fn<typeof fetch>().mockImplementation((address) => {
    const rules = [{ verbs, apiGroups: ['project.openshift.io'], resources: ['projects'] }];
    return Promise.resolve(new Response(JSON.stringify(String(address).includes('rulesreviews') ? { status: { resourceRules: rules } } : {})));
  });
  vi.stubGlobal('fetch', request);
  render(
    <QueryClientProvider client={new QueryClient()}>
      <EditProject project={project} close={close} />
    </QueryClientProvider>,
  );
  return request;
}

const save = () => screen.getByRole<HTMLButtonElement>('button', { name: text.save });

it('changes the display name and the description of a project', async () => {
  const close = vi.fn();
  const request = open(['get', 'patch'], close);
  expect(save().disabled).toBe(true);
  fireEvent.change(screen.getByLabelText(text.projects.description), { target: { value: 'Everything for sale' } });
  await waitFor(() => expect(save().disabled).toBe(false));
  fireEvent.submit(screen.getByLabelText(text.projects.description));
  await waitFor(() => expect(close).toHaveBeenCalled());
  const [address, options] = request.mock.calls.find(([, init]) => init?.method === 'PATCH') ?? [];
  expect(address).toBe('/console/proxy/apis/project.openshift.io/v1/projects/shop');
  expect(JSON.parse(String(options?.body))).toEqual({ metadata: { annotations: { 'openshift.io/display-name': 'Shop', 'openshift.io/description': 'Everything for sale' } } });
});

it('changes nothing for a user without the right', async () => {
  const request = open(['get'], vi.fn());
  await waitFor(() => expect(request).toHaveBeenCalled());
  fireEvent.change(screen.getByLabelText(text.projects.displayName), { target: { value: 'Other' } });
  fireEvent.submit(screen.getByLabelText(text.projects.displayName));
  expect(save().disabled).toBe(true);
  expect(request.mock.calls.every(([, init]) => init?.method !== 'PATCH')).toBe(true);
});
