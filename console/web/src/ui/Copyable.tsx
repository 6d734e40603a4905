import { ClipboardCopy } from '@patternfly/react-core';
import { text } from '../text/en';

interface CopyableProps {
  label: string;
  children: string;
  /**
   * isCode shows the text as code. The first line is visible, and the remaining lines on request.
   */
  isCode?: boolean;
  isExpanded?: boolean;
}

/** Copyable shows text with a button that copies it. */
export function Copyable({ label, children, isCode = false, isExpanded }: CopyableProps) {
  return (
    <ClipboardCopy isReadOnly isCode={isCode} isExpanded={isExpanded} variant={isCode ? 'expansion' : 'inline'} hoverTip={text.copy} clickTip={text.copied} textAriaLabel={label}>
      {children}
    </ClipboardCopy>
  );
}
