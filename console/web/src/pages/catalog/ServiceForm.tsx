import { Checkbox, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { serviceIcon } from '../../api/catalog';
import { createCommandOf, placeholder } from '../../api/equivalent';
import { validName } from '../../api/projects';
import { isComplete, orderOf, parametersOf, textsOf, useService, type Service } from '../../api/services';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Field } from '../../ui/Field';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { CreateForm } from './CreateForm';
import { Command } from './fields';
import { ItemIcon } from './ItemIcon';
import { ParameterFields, PlanField } from './parameters';

const t = text.services;

/** Component orders a broker's service. */
export function Component() {
  const { place = '', name = '' } = useParams();
  const service = useService(place, name);
  useTitle(service.data?.of.spec.externalName ?? name, text.catalog.title);
  if (service.error) {
    return <Failure error={service.error} />;
  }
  return service.data ? <ServiceForm place={place} {...service.data} /> : <Loading />;
}

function ServiceForm({ place, of, plans }: Service & { place: string }) {
  const [query] = useSearchParams();
  const [project, setProject] = useState(query.get('project') ?? '');
  const [name, setName] = useState(of.spec.externalName);
  const [planName, setPlanName] = useState(plans[0]?.metadata.name ?? '');
  const [edited, setEdited] = useState<Record<string, string>>({});
  const [bind, setBind] = useState(true);
  const [editedBinding, setEditedBinding] = useState<Record<string, string>>({});
  const plan = plans.find(({ metadata }) => metadata.name === planName);
  const schema = plan?.spec.instanceCreateParameterSchema;
  const texts = { ...textsOf(schema), ...edited };
  const bindable = plan?.spec.bindable ?? of.spec.bindable ?? false;
  const bindingSchema = plan?.spec.serviceBindingCreateParameterSchema;
  const bindingTexts = { ...textsOf(bindingSchema), ...editedBinding };
  const binds = bind && bindable;
  const nameInvalid = validName(name) ? undefined : text.projects.nameInvalid;
  const valid = plan !== undefined && !nameInvalid && isComplete(schema, texts) && (!binds || isComplete(bindingSchema, bindingTexts));
  const order = () => orderOf({ name, place, className: of.metadata.name, planName, parameters: parametersOf(schema, texts), binding: binds ? parametersOf(bindingSchema, bindingTexts) : undefined });
  return (
    <CreateForm
      title={of.spec.externalMetadata?.displayName ?? of.spec.externalName}
      icon={<ItemIcon kind="service" icon={serviceIcon(of.spec.externalMetadata)} tags={of.spec.tags ?? []} />}
      description={of.spec.externalMetadata?.longDescription ?? of.spec.description ?? ''}
      project={project}
      setProject={setProject}
      valid={valid}
      objects={async () => ({ objects: order(), message: t.ordered })}
    >
      <PlanField plans={plans} plan={planName} change={setPlanName} />
      <Field id="service-name" label={text.name} required invalid={nameInvalid} help={t.nameHelp}>
        <TextInput id="service-name" value={name} validated={nameInvalid ? 'error' : 'default'} aria-describedby="service-name-help" onChange={(_, value) => setName(value)} />
      </Field>
      <ParameterFields schema={schema} texts={texts} change={(name, value) => setEdited({ ...edited, [name]: value })} />
      {bindable && <Checkbox id="service-bind" label={t.bind} description={t.bindHelp} isChecked={bind} onChange={(_, checked) => setBind(checked)} />}
      {binds && bindingSchema?.properties && (
        <ParameterFields prefix="binding" schema={bindingSchema} texts={bindingTexts} change={(name, value) => setEditedBinding({ ...editedBinding, [name]: value })} />
      )}
      {valid && project !== '' && <OrderCommand project={project} order={order} />}
    </CreateForm>
  );
}

/** OrderCommand shows the command with the same effect, unless a parameter is invalid. */
function OrderCommand({ project, order }: { project: string; order: () => KubeObject[] }) {
  try {
    const { command, lacksSecrets } = createCommandOf(order(), project);
    return <Command command={command} note={lacksSecrets ? text.catalog.placeholders(placeholder) : undefined} />;
  } catch {
    return null; // the form reports the parameter when it is sent
  }
}
