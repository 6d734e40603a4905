import { TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { create } from '../../../api/http';
import { validName } from '../../../api/projects';
import { bindingOf, classOf, isComplete, parametersOf, planOf, textsOf, useService, type Service } from '../../../api/services';
import { text } from '../../../text/en';
import { Field } from '../../../ui/Field';
import { FormDialog } from '../../../ui/FormDialog';
import { Loading } from '../../../ui/Loading';
import { Outcome } from '../../../ui/Outcome';
import { ParameterFields } from '../../catalog/parameters';
import type { DialogProps } from '../dialogs';

const t = text.services;

/** Bind is the dialog that creates a binding to a service instance. */
export default function Bind(props: DialogProps) {
  const { place, name } = classOf(props.object);
  const { data, error } = useService(place, name);
  if (data) {
    return <Binding {...props} service={data} />;
  }
  return (
    <FormDialog title={t.bindAction} action={text.create} isReady={false} submit={() => Promise.resolve()} close={props.close}>
      {error ? <Outcome error={error} /> : <Loading />}
    </FormDialog>
  );
}

function Binding({ object, path, close, service: { plans } }: DialogProps & { service: Service }) {
  const instance = object.metadata.name;
  const [name, setName] = useState(instance);
  const [edited, setEdited] = useState<Record<string, string>>({});
  const schema = planOf(object, plans)?.spec.serviceBindingCreateParameterSchema;
  const texts = { ...textsOf(schema), ...edited };
  const invalid = validName(name) ? undefined : text.projects.nameInvalid;
  const submit = async () => {
    await create(path.replace(/\/serviceinstances\/[^/]*$/, '/servicebindings'), name, bindingOf(name, instance, parametersOf(schema, texts)));
    close();
  };
  return (
    <FormDialog variant="medium" title={t.bindAction} body={t.bindHelp} action={text.create} isReady={!invalid && isComplete(schema, texts)} submit={submit} close={close}>
      <Field id="binding-name" label={text.name} required invalid={invalid}>
        <TextInput id="binding-name" value={name} validated={invalid ? 'error' : 'default'} autoComplete="off" onChange={(_, value) => setName(value)} />
      </Field>
      <ParameterFields prefix="binding" schema={schema} texts={texts} change={(field, value) => setEdited({ ...edited, [field]: value })} />
    </FormDialog>
  );
}
