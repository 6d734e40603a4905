import { Alert } from '@patternfly/react-core';
import { useState } from 'react';
import { patch, unchanged } from '../../../api/http';
import { classOf, isComplete, parametersOf, parametersOfInstance, planOf, textsOf, updateOf, useService, type Service } from '../../../api/services';
import { text } from '../../../text/en';
import { FormDialog } from '../../../ui/FormDialog';
import { Loading } from '../../../ui/Loading';
import { Outcome } from '../../../ui/Outcome';
import { ParameterFields, PlanField } from '../../catalog/parameters';
import type { DialogProps } from '../dialogs';

const t = text.services;

/** ServiceUpdate is the dialog for a service instance's plan and parameters. */
export default function ServiceUpdate(props: DialogProps) {
  const { place, name } = classOf(props.object);
  const { data, error } = useService(place, name);
  if (data) {
    return <Update {...props} service={data} />;
  }
  return (
    <FormDialog title={t.update} action={text.save} isReady={false} submit={() => Promise.resolve()} close={props.close}>
      {error ? <Outcome error={error} /> : <Loading />}
    </FormDialog>
  );
}

function Update({ object, path, close, service: { of, plans } }: DialogProps & { service: Service }) {
  const [base] = useState(object);
  const existing = parametersOfInstance(base);
  const basePlan = planOf(base, plans);
  const isPlanFixed = !(basePlan?.spec.planUpdatable ?? of.spec.planUpdatable);
  const [planName, setPlanName] = useState(basePlan?.metadata.name ?? '');
  const [edited, setEdited] = useState<Record<string, string>>({});
  const plan = plans.find(({ metadata }) => metadata.name === planName);
  const schema = plan?.spec.instanceUpdateParameterSchema;
  const texts = { ...textsOf(schema, existing), ...edited };
  const isBusy = (object.status as { currentOperation?: string } | undefined)?.currentOperation !== undefined;
  const hasChanged = object.metadata.generation !== base.metadata.generation;
  const isEdited = planName !== basePlan?.metadata.name || Object.keys(edited).length > 0;
  const save = async () => {
    if (plan) {
      await patch(path, [unchanged(base), ...updateOf(base, plan, parametersOf(schema, texts, existing))]);
      close();
    }
  };
  return (
    <FormDialog variant="medium" title={t.update} action={text.save} isReady={plan !== undefined && isEdited && !isBusy && isComplete(schema, texts)} submit={save} close={close}>
      <PlanField plans={plans} plan={planName} change={setPlanName} fixed={isPlanFixed ? t.planFixed : undefined} />
      <ParameterFields schema={schema} texts={texts} change={(name, value) => setEdited({ ...edited, [name]: value })} />
      {isBusy && <Alert isInline isLiveRegion component="h2" variant="info" title={t.isBusy} />}
      {hasChanged && <Alert isInline isLiveRegion component="h2" variant="warning" title={text.editor.changed} />}
    </FormDialog>
  );
}
