import { FormSelect, FormSelectOption, TextArea, TextInput } from '@patternfly/react-core';
import { fieldsOf, type Schema, type ServicePlan } from '../../api/services';
import { text } from '../../text/en';
import { Field } from '../../ui/Field';

const t = text.services;

interface PlanFieldProps {
  plans: ServicePlan[];
  /** plan is the object name of the selected plan. */
  plan: string;
  change: (plan: string) => void;
  /** fixed is the reason why the plan cannot change. */
  fixed?: string;
}

/** PlanField selects a service's plan. */
export function PlanField({ plans, plan, change, fixed }: PlanFieldProps) {
  return (
    <Field id="service-plan" label={t.plan} help={fixed}>
      <FormSelect id="service-plan" value={plan} isDisabled={fixed !== undefined} aria-describedby="service-plan-help" onChange={(_, chosen) => change(chosen)}>
        {plans.map(({ metadata, spec }) => (
          <FormSelectOption key={metadata.name} value={metadata.name} label={t.planOf(spec.externalName, spec.description ?? '', spec.free ?? true)} />
        ))}
      </FormSelect>
    </Field>
  );
}

interface ParameterFieldsProps {
  schema: Schema | undefined;
  texts: Record<string, string>;
  change: (name: string, value: string) => void;
  /** prefix is the prefix of the fields' IDs. */
  prefix?: string;
}

/** ParameterFields contains the fields for the parameters in a schema. */
export function ParameterFields({ schema, texts, change, prefix = 'service' }: ParameterFieldsProps) {
  return fieldsOf(schema).map(([name, field]) => (
    <Field key={name} id={`${prefix}-parameter-${name}`} label={field.title ?? name} help={field.description} required={schema?.required?.includes(name)}>
      <Control id={`${prefix}-parameter-${name}`} field={field} value={texts[name] ?? ''} change={(value) => change(name, value)} />
    </Field>
  ));
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
