import { FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import type { ReactNode } from 'react';

interface FieldProps {
  /** id is the id of the control. The help has the same with -help at its end. */
  id: string;
  label: string;
  help?: string;
  required?: boolean;
  /** invalid is the problem of the value. It replaces the help. */
  invalid?: string;
  /** isGroup means that the field has several controls. */
  isGroup?: boolean;
  children: ReactNode;
}

/** Field is a field of a form with its label and its help, or its problem. */
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
