import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { text } from '../text/en';
import { FormDialog } from './FormDialog';

afterEach(cleanup);

const save = () => screen.getByText<HTMLElement>(text.save).closest('button');

it('sends one request at a time, and keeps its fields and the reason after a failure', async () => {
  const requests: { resolve: (value?: unknown) => void; reject: (reason: Error) => void }[] = [];
  const submit = vi.fn(() => new Promise((resolve, reject) => requests.push({ resolve, reject })));
  render(
    <FormDialog title="Change" action={text.save} submit={submit} close={vi.fn()}>
      <input aria-label="Name" />
    </FormDialog>,
  );
  const name = screen.getByLabelText<HTMLInputElement>('Name');
  fireEvent.change(name, { target: { value: 'shop' } });
  fireEvent.submit(name);
  expect(save()?.disabled).toBe(true);
  fireEvent.submit(name);
  expect(submit).toHaveBeenCalledTimes(1);
  requests[0]?.reject(new Error('shop is taken'));
  await screen.findByText(/shop is taken/);
  expect(name.value).toBe('shop');
  fireEvent.submit(name);
  expect(submit).toHaveBeenCalledTimes(2);
  expect(screen.queryByText(/shop is taken/)).toBeNull();
  requests[1]?.resolve();
  await waitFor(() => expect(save()?.disabled).toBe(false));
});

it('sends nothing before it is ready', () => {
  const submit = vi.fn(() => Promise.resolve());
  render(
    <FormDialog title="Change" action={text.save} isReady={false} submit={submit} close={vi.fn()}>
      <input aria-label="Name" />
    </FormDialog>,
  );
  fireEvent.submit(screen.getByLabelText('Name'));
  expect(submit).not.toHaveBeenCalled();
});

it('does not submit the form of the page that opened it', () => {
  const submitPage = vi.fn();
  render(
    <form onSubmit={submitPage}>
      <FormDialog title="Change" action={text.save} submit={() => Promise.resolve()} close={vi.fn()}>
        <input aria-label="Name" />
      </FormDialog>
    </form>,
  );
  fireEvent.submit(screen.getByLabelText('Name'));
  expect(submitPage).not.toHaveBeenCalled();
});
