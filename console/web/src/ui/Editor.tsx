import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { yaml } from '@codemirror/lang-yaml';
import { linter, lintGutter } from '@codemirror/lint';
import { Annotation, Compartment, EditorState, type Extension, type Text } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { basicSetup } from 'codemirror';
import { useLayoutEffect, useRef, useState } from 'react';
import { completionsAt } from '../api/schema/completions';
import { problemsOf } from '../api/schema/problems';
import { darkClass } from '../app/theme';

interface EditorProps {
  label: string;
  value: string;
  readOnly?: boolean;
  /**
   * cursor is the position to which the cursor moves. To move the cursor to the same position
   * again, pass a new object.
   */
  cursor?: { at: number };
  onChange: (value: string) => void;
}

/** external marks changes that the page makes. The editor does not report these changes. */
const external = Annotation.define<boolean>();

/** maxBytes is the maximum size of files that users drop into the editor. */
const maxBytes = 4 << 20;

/** checkDelay is the delay in milliseconds before text is checked after a change. */
const checkDelay = 500;

/** maxDescription is the maximum number of characters that are shown of a field's description. */
const maxDescription = 300;

/**
 * Editor edits YAML. It marks parts that do not match the server's schemas, and completes field
 * names from the schemas. It is in a shadow tree, where CodeMirror adopts style sheets. Outside a
 * shadow tree, CodeMirror would add style elements, which the content security policy rejects.
 */
export default function Editor({ label, value, readOnly = false, cursor, onChange }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const [access] = useState(() => new Compartment());
  const [theme] = useState(() => new Compartment());
  const changed = useRef(onChange);
  changed.current = onChange;
  useLayoutEffect(() => {
    const element = host.current;
    if (!element) {
      return undefined;
    }
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          basicSetup,
          theme.of(currentTheme()),
          yaml(),
          EditorState.languageData.of(() => [{ autocomplete: complete }]),
          linter(async ({ state }) => (await problemsOf(state.doc.toString())).map(({ from, to, message }) => ({ from, to, message, severity: 'error' })), { delay: checkDelay }),
          lintGutter(),
          access.of(EditorState.readOnly.of(readOnly)),
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.domEventHandlers({ drop: (event, target) => dropFile(event, target) }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged && !update.transactions.some((transaction) => transaction.annotation(external))) {
              changed.current(update.state.doc.toString());
            }
          }),
        ],
      }),
    });
    editor.scrollDOM.tabIndex = 0; // users can scroll long lines with the keyboard
    view.current = editor;
    const themes = new MutationObserver(() => editor.dispatch({ effects: theme.reconfigure(currentTheme()) }));
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
    return () => {
      themes.disconnect();
      editor.destroy();
    };
    // The effects below change the document and whether it can be edited. The editor is not
    // recreated, so the cursor and the history are kept.
  }, [label, access, theme]);
  useLayoutEffect(() => view.current?.dispatch({ effects: access.reconfigure(EditorState.readOnly.of(readOnly)) }), [access, readOnly]);
  // Update the document before the user can type more text. A later effect would remove the new
  // text and move the cursor to the start.
  useLayoutEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== value) {
      const { doc, selection } = editor.state;
      const insert = editor.state.toText(value);
      const { anchor, head } = selection.main;
      editor.dispatch({
        changes: { from: 0, to: doc.length, insert },
        selection: { anchor: samePlace(doc, insert, anchor), head: samePlace(doc, insert, head) },
        annotations: external.of(true),
      });
    }
  }, [value]);
  useLayoutEffect(() => {
    const editor = view.current;
    if (editor && cursor) {
      editor.dispatch({ selection: { anchor: Math.min(cursor.at, editor.state.doc.length) }, scrollIntoView: true });
      editor.focus();
    }
  }, [cursor]);
  return <div className="console-editor" ref={host} />;
}

/** complete offers the field names or the values that are possible at the cursor. */
async function complete(context: CompletionContext): Promise<CompletionResult | null> {
  const { pos, state, explicit } = context;
  if (state.readOnly || (!explicit && !context.matchBefore(/[\w.$/-]+$/))) {
    return null;
  }
  const found = await completionsAt(state.doc.toString(), pos);
  if (!found || found.options.length === 0) {
    return null;
  }
  const options = found.options.map(({ label, type, description, insert }) => ({
    label,
    type: 'property',
    detail: type,
    info: description.length > maxDescription ? `${description.slice(0, maxDescription)}…` : description || undefined,
    apply: insert,
  }));
  return { from: found.from, options, validFor: /^[\w.$/-]*$/ };
}

/** currentTheme returns the editor's fonts, and the colors of the page's theme. */
function currentTheme(): Extension {
  const dark = document.documentElement.classList.contains(darkClass);
  const fonts = { '&': { fontSize: '0.8125rem' }, '.cm-content, .cm-gutters': { fontFamily: "'Red Hat Mono', monospace" } };
  return [syntaxHighlighting(highlighting(dark)), EditorView.theme(fonts, { dark })];
}

/**
 * samePlace maps a position in a text to a position in a later text: in the nearest identical line
 * or, if there is none, in the line with the same number.
 */
export function samePlace(before: Text, after: Text, position: number): number {
  const line = before.lineAt(position);
  const column = position - line.from;
  for (let distance = 0; distance < Math.max(before.lines, after.lines); distance++) {
    for (const number of [line.number - distance, line.number + distance]) {
      if (number >= 1 && number <= after.lines && after.line(number).text === line.text) {
        return after.line(number).from + column;
      }
    }
  }
  const { from, length } = after.line(Math.min(line.number, after.lines));
  return from + Math.min(column, length);
}

/**
 * dropFile inserts the contents of dropped files, each as a document. It ignores files if the editor
 * is read-only, and files that are too large. CodeMirror itself would insert these files.
 */
function dropFile(event: DragEvent, editor: EditorView): boolean {
  const files = [...(event.dataTransfer?.files ?? [])];
  if (files.length === 0) {
    return false;
  }
  event.preventDefault();
  if (editor.state.readOnly || files.reduce((sum, { size }) => sum + size, 0) > maxBytes) {
    return true;
  }
  void Promise.all(files.map((file) => file.text())).then((contents) =>
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: contents.map((content) => content.trimEnd() + '\n').join('---\n') } }),
  );
  return true;
}

/** highlighting returns the colors for a theme. All colors have a contrast of at least 4.5 to 1. */
function highlighting(dark: boolean): HighlightStyle {
  const [name, text, comment, meta] = dark ? ['#92c5f9', '#afdc8f', '#a3a3a3', '#f8ae54'] : ['#004d99', '#3d7317', '#5c5c5c', '#8f4700'];
  return HighlightStyle.define([
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: name },
    { tag: [tags.string, tags.content, tags.number, tags.bool], color: text },
    { tag: [tags.comment, tags.lineComment], color: comment },
    { tag: [tags.meta, tags.keyword, tags.labelName, tags.typeName], color: meta },
  ]);
}
