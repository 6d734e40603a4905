import { FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import type { ReactNode } from 'react';

interface FieldProps {
  /** id is the control's ID. The help's ID is the same with the suffix -help. */
  id: string;
  label: string;
  help?: string;
  required?: boolean;
  /** invalid describes the problem with the value. It is shown instead of the help. */
  invalid?: string;
  /** isGroup means that the field has several controls. */
  isGroup?: boolean;
  children: ReactNode;
}

/** Field is a form field with its label and its help or problem. */
export function Field({ id, label, help, required, invalid, isGroup, children }: FieldProps) {
  return (
    <FormGroup label={label} fieldId={id} isRequired={required} role={isGroup ? 'group' : undefined}>
      {children}
      {(invalid ?? help) && (
        <FormHelperText>
          <HelperText id={`${id}-help`}>
            <HelperTextItem variant={invalid ? 'error' : 'default'}>{invalid ?? help}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      )}
    </FormGroup>
  );
}
