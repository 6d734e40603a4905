import { TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import type { Argument } from '../../api/jolokia';
import { java as t } from '../../text/java';
import { Field } from '../../ui/Field';
import { FormDialog } from '../../ui/FormDialog';

interface ValuesProps {
  title: string;
  body: string;
  action: string;
  args: Argument[];
  /** initial contains the initial text of each argument. */
  initial?: string[];
  run: (entered: string[]) => Promise<unknown>;
  close: () => void;
}

/** Values is a dialog that requests the values of arguments, and confirmation. */
export function Values({ title, body, action, args, initial = [], run, close }: ValuesProps) {
  const [entered, setEntered] = useState(() => args.map((_, index) => initial[index] ?? ''));
  return (
    <FormDialog title={title} body={body} action={action} isDanger submit={async () => run(entered).then(close)} close={close}>
      {args.map(({ name }, index) => (
        <Field key={name} id={`value-${index}`} label={name} help={index === 0 ? t.valueHelp : undefined}>
          <TextInput
            id={`value-${index}`}
            aria-describedby={index === 0 ? `value-${index}-help` : undefined}
            autoComplete="off"
            value={entered[index]}
            onChange={(_, value) => setEntered(entered.map((old, at) => (at === index ? value : old)))}
          />
        </Field>
      ))}
    </FormDialog>
  );
}
