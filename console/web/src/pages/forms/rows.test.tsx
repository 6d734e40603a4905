import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, it } from 'vitest';
import { Items } from './Items';
import { Pairs } from './Pairs';
import { text } from '../../text/en';

afterEach(cleanup);

function EditPairs() {
  const [pairs, setPairs] = useState<[string, string][]>([['a', '1'], ['b', '2'], ['c', '3']]);
  return <Pairs label="Labels" pairs={pairs} change={setPairs} />;
}

function EditItems() {
  const [items, setItems] = useState(['a', 'b', 'c']);
  return <Items label="Hosts" items={items} change={setItems} />;
}

it.each([
  ['pairs', <EditPairs />, text.forms.pairKey],
  ['items', <EditItems />, (n: number) => text.forms.listItem('Hosts', n)],
])('keeps the focus when the user removes %s', (_, editor, field) => {
  render(editor);
  const remove = (n: number) => {
    const button = screen.getByRole('button', { name: text.forms.removePair(n) });
    button.focus();
    fireEvent.click(button);
  };
  remove(1);
  expect(document.activeElement).toBe(screen.getByRole('button', { name: text.forms.removePair(1) }));
  remove(2);
  expect(document.activeElement).toBe(screen.getByLabelText(field(1)));
  remove(1);
  expect(document.activeElement).toBe(screen.getByLabelText(field(1)));
});
