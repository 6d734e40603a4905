import { EditorView } from '@codemirror/view';
import { undo } from '@codemirror/commands';
import { Text } from '@codemirror/state';
import { cleanup, render } from '@testing-library/react';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

beforeAll(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => undefined, removeEventListener: () => undefined }));
  Range.prototype.getClientRects = () => [] as unknown as DOMRectList; // jsdom has no layout
});
afterEach(cleanup);

async function show() {
  const { default: Editor } = await import('./Editor');
  const onChange = vi.fn<(value: string) => void>();
  const editor = (value: string, readOnly: boolean) => <Editor label="YAML" value={value} readOnly={readOnly} onChange={onChange} />;
  const { container, rerender } = render(editor('a: 1\nb: 2\nc: 3\n', true));
  const root = container.querySelector('.console-editor')?.shadowRoot;
  const view = () => EditorView.findFromDOM(root?.querySelector('.cm-editor') as HTMLElement) as EditorView;
  return { view, onChange, update: (value: string, readOnly: boolean) => rerender(editor(value, readOnly)) };
}

describe('Editor', () => {
  it('keeps cursor and history when the rights are loaded', async () => {
    const { view, onChange, update } = await show();
    const first = view();
    first.dispatch({ selection: { anchor: 9 } });
    expect(first.state.readOnly).toBe(true);
    update('a: 1\nb: 2\nc: 3\n', false);
    expect(view()).toBe(first);
    expect(first.state.readOnly).toBe(false);
    expect(first.state.selection.main.head).toBe(9);
    first.dispatch(first.state.replaceSelection('0'));
    expect(onChange).toHaveBeenCalledWith('a: 1\nb: 20\nc: 3\n');
    update('a: 1\nb: 20\nc: 3\n', false);
    undo(first);
    expect(first.state.doc.toString()).toBe('a: 1\nb: 2\nc: 3\n');
  });

  it('keeps the cursor in its line when the object changes', async () => {
    const { view, onChange, update } = await show();
    view().dispatch({ selection: { anchor: 9 } });
    update('a: changed\nnew: 0\nb: 2\nc: changed\n', true);
    expect(view().state.sliceDoc(0, view().state.selection.main.head)).toBe('a: changed\nnew: 0\nb: 2');
    expect(onChange).not.toHaveBeenCalled();
  });

  it('keeps the cursor near a removed line', async () => {
    const { samePlace } = await import('./Editor');
    expect(samePlace(Text.of(['a: 1', 'long: line']), Text.of(['a: 1', 'b: 2']), 13)).toBe(9);
    expect(samePlace(Text.of(['a', 'b', 'c']), Text.of(['x']), 4)).toBe(0);
  });

  it('inserts the files that users drop, each as a document', async () => {
    const { view, onChange, update } = await show();
    update('a: 1\nb: 2\nc: 3\n', false);
    drop(view(), ['kind: A\n\n', 'kind: B']);
    await vi.waitFor(() => expect(onChange).toHaveBeenCalledWith('kind: A\n---\nkind: B\n'));
  });

  it.each([
    ['files that are too large', false, 5 << 20],
    ['files while the editor is read-only', true, 1],
  ])('does not insert %s', async (_, readOnly, size) => {
    const { view, onChange, update } = await show();
    update('a: 1\nb: 2\nc: 3\n', readOnly);
    drop(view(), ['kind: A\n'], size);
    await new Promise((resolve) => setTimeout(resolve));
    expect(view().state.doc.toString()).toBe('a: 1\nb: 2\nc: 3\n');
    expect(onChange).not.toHaveBeenCalled();
  });
});

/**
 * drop drops files on an editor. It uses its own objects instead of jsdom's files, which have no
 * text method.
 */
function drop(view: EditorView, contents: string[], size = 1) {
  const event = new Event('drop', { bubbles: true, cancelable: true });
  const files = contents.map((content) => ({ size, text: () => Promise.resolve(content) }));
  Object.assign(event, { dataTransfer: { files, getData: () => '' } });
  view.contentDOM.dispatchEvent(event);
  expect(event.defaultPrevented).toBe(true);
}
