import { TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { FormDialog } from './FormDialog';

interface ConfirmProps {
  title: string;
  body: string;
  action: string;
  /** typed is the text that the user must type before the action is possible. */
  typed?: string;
  run: () => Promise<unknown>;
  close: () => void;
}

/** Confirm requests confirmation before an action that cannot be undone. */
export function Confirm({ title, body, action, typed, run, close }: ConfirmProps) {
  const [entered, setEntered] = useState('');
  return (
    <FormDialog title={title} body={body} action={action} isDanger isReady={typed === undefined || entered === typed} submit={() => run().then(close)} close={close}>
      {typed !== undefined && <TextInput aria-label={body} value={entered} onChange={(_, value) => setEntered(value)} autoComplete="off" />}
    </FormDialog>
  );
}
