import { Button } from '@patternfly/react-core';
import { useState } from 'react';
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

/** decode decodes base64. If the decoded value is not text, decode returns the encoded value. */
export const decode = (value: string): string => decodeText(value) ?? value;

/** decodeText decodes base64. It returns undefined if the decoded value is not text. */
export function decodeText(value: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
