import { Button } from '@patternfly/react-core';
import { useState } from 'react';
import { decode } from '../../api/base64';
import { text } from '../../text/en';
import { Copyable } from '../../ui/Copyable';

/** Secrets shows a secret's keys and, on request, their values. */
export function Secrets({ data }: { data: Record<string, string> }) {
  const [shown, setShown] = useState(false);
  const entries = Object.entries(data);
  if (entries.length === 0) {
    return <p>{text.none}</p>;
  }
  return (
    <>
      <Button variant="link" isInline onClick={() => setShown(!shown)}>
        {shown ? text.sections.hide : text.sections.reveal}
      </Button>
      {entries.map(([key, value]) => (
        <div key={key}>
          <strong>{key}</strong>
          {shown && (
            <Copyable label={key} isCode>
              {decode(value)}
            </Copyable>
          )}
        </div>
      ))}
    </>
  );
}
