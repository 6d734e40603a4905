import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { text } from '../text/en';
import { RowActions } from './RowActions';

afterEach(cleanup);

it('names the row in the label of its menu', async () => {
  const onClick = vi.fn();
  render(<RowActions name="front" items={[{ title: text.delete, onClick }]} />);
  fireEvent.click(screen.getByRole('button', { name: text.list.rowActions('front') }));
  fireEvent.click(await screen.findByRole('menuitem', { name: text.delete }));
  expect(onClick).toHaveBeenCalledOnce();
});
