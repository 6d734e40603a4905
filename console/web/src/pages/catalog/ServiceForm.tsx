import { Checkbox, FormGroup, FormSelect, FormSelectOption, TextArea, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { validName } from '../../api/projects';
import { orderOf, useService, valueOf, type Schema, type ServiceClass, type ServicePlan } from '../../api/services';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Field } from '../../ui/Field';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { CreateForm } from './CreateForm';

const t = text.services;

/** Component orders a service of a broker. */
export function Component() {
  const { place = '', name = '' } = useParams();
  const service = useService(place, name);
  useTitle(service.data?.of.spec.externalName ?? name, text.catalog.title);
  if (service.error) {
    return <Failure error={service.error} />;
  }
  return service.data ? <ServiceForm place={place} of={service.data.of} plans={service.data.plans} /> : <Loading />;
}

/** anything is the schema of parameters that the broker does not describe. */
const anything: Schema = { title: t.parameters, description: t.parametersHelp };

function ServiceForm({ place, of, plans }: { place: string; of: ServiceClass; plans: ServicePlan[] }) {
  const [query] = useSearchParams();
  const [project, setProject] = useState(query.get('project') ?? '');
  const [name, setName] = useState(of.spec.externalName);
  const [planName, setPlanName] = useState(plans[0]?.metadata.name ?? '');
  const [values, setValues] = useState<Record<string, string>>({});
  const [bind, setBind] = useState(true);
  const plan = plans.find(({ metadata }) => metadata.name === planName);
  const schema = plan?.spec.instanceCreateParameterSchema;
  const fields = Object.entries(schema?.properties ?? {});
  const bindable = plan?.spec.bindable ?? of.spec.bindable ?? false;
  const entered = (key: string, field: Schema) => values[key] ?? (field.default === undefined ? '' : typeof field.default === 'string' ? field.default : JSON.stringify(field.default));
  const nameInvalid = validName(name) ? undefined : text.projects.nameInvalid;
  const complete = (schema?.required ?? []).every((key) => entered(key, schema?.properties?.[key] ?? {}) !== '');
  const parameters = () =>
    schema?.properties
      ? Object.fromEntries(fields.map(([key, field]) => [key, valueOf(field, entered(key, field))]).filter(([, value]) => value !== undefined))
      : ((valueOf(anything, entered('', anything)) ?? {}) as Record<string, unknown>);
  return (
    <CreateForm
      title={of.spec.externalMetadata?.displayName ?? of.spec.externalName}
      description={of.spec.externalMetadata?.longDescription ?? of.spec.description ?? ''}
      project={project}
      setProject={setProject}
      valid={plan !== undefined && !nameInvalid && complete}
      objects={async () => ({ objects: orderOf({ name, place, className: of.metadata.name, planName, parameters: parameters(), bind: bind && bindable }), message: t.ordered })}
    >
      <FormGroup label={t.plan} fieldId="service-plan">
        <FormSelect id="service-plan" value={planName} onChange={(_, chosen) => setPlanName(chosen)}>
          {plans.map(({ metadata, spec }) => (
            <FormSelectOption key={metadata.name} value={metadata.name} label={t.planOf(spec.externalName, spec.description ?? '', spec.free ?? true)} />
          ))}
        </FormSelect>
      </FormGroup>
      <Field id="service-name" label={text.name} required invalid={nameInvalid} help={t.nameHelp}>
        <TextInput id="service-name" value={name} validated={nameInvalid ? 'error' : 'default'} aria-describedby="service-name-help" onChange={(_, value) => setName(value)} />
      </Field>
      {(fields.length > 0 || schema?.properties ? fields : [['', anything] as [string, Schema]]).map(([key, field]) => (
        <Field key={key} id={`service-parameter-${key}`} label={field.title ?? key} help={field.description} required={schema?.required?.includes(key)}>
          <Control id={`service-parameter-${key}`} field={field} value={entered(key, field)} change={(value) => setValues({ ...values, [key]: value })} />
        </Field>
      ))}
      {bindable && <Checkbox id="service-bind" label={t.bind} description={t.bindHelp} isChecked={bind} onChange={(_, checked) => setBind(checked)} />}
    </CreateForm>
  );
}

function Control({ id, field, value, change }: { id: string; field: Schema; value: string; change: (value: string) => void }) {
  const choices = field.type === 'boolean' ? ['', 'true', 'false'] : field.enum && ['', ...field.enum.map(String)];
  if (choices) {
    return (
      <FormSelect id={id} value={value} onChange={(_, chosen) => change(chosen)}>
        {choices.map((choice) => (
          <FormSelectOption key={choice} value={choice} label={choice} />
        ))}
      </FormSelect>
    );
  }
  if (['string', 'integer', 'number'].includes(field.type ?? '')) {
    return <TextInput id={id} value={value} autoComplete="off" aria-describedby={`${id}-help`} onChange={(_, entered) => change(entered)} />;
  }
  return <TextArea id={id} className="console-mono" value={value} resizeOrientation="vertical" aria-describedby={`${id}-help`} onChange={(_, entered) => change(entered)} />;
}
