import { Alert, FormSection } from '@patternfly/react-core';
import { useState } from 'react';
import { patch, unchanged } from '../../../api/http';
import { text } from '../../../text/en';
import { FormDialog } from '../../../ui/FormDialog';
import { InputField } from '../../forms/InputField';
import { isComplete, shownInputs } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { isSame, type Edit } from './edit';

/**
 * EditDialog changes an object with a form. The server rejects the change if the edited parts of
 * the object have changed since the dialog was opened.
 */
export function EditDialog({ edit, object, path, close }: DialogProps & { edit: Edit }) {
  const [base] = useState(object);
  const [initial] = useState(() => edit.values(base));
  const [values, setValues] = useState(initial);
  const sections = edit.sections(base);
  const current = edit.values(object);
  const hasChanged = !isSame(initial, current) || !isSame(current, initial);
  const isReady = !isSame(initial, values) && sections.every((section) => isComplete(section, values));
  const save = () => {
    // A concurrent change to the edited parts is a conflict. A change to the number of replicas is
    // not.
    const from = hasChanged ? base : object;
    return patch(path, [unchanged(from), ...edit.operations(from, values)]).then(close);
  };
  return (
    <FormDialog variant="medium" title={edit.title} action={text.save} isReady={isReady} submit={save} close={close}>
      {sections.filter((section) => shownInputs(section, values).length > 0).map((section) => (
        <FormSection key={section.title} title={section.title || undefined} titleElement="h2">
          {section.help && <p>{section.help}</p>}
          {shownInputs(section, values).map((input) => (
            <InputField key={input.key} input={input} project={object.metadata.namespace ?? ''} values={values} change={(value) => setValues({ ...values, [input.key]: value })} />
          ))}
        </FormSection>
      ))}
      {hasChanged && <Alert isInline variant="warning" isLiveRegion component="h2" title={text.editor.changed} />}
    </FormDialog>
  );
}
