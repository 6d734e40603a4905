import type { LooseObject } from '../../../api/types';
import { edits } from '../../../text/edits';
import { autoscalerForm } from '../../forms/autoscaler';
import type { Values } from '../../forms/model';
import type { DialogProps } from '../dialogs';
import { setField, type Edit } from './edit';
import { EditDialog } from './EditDialog';

const t = edits.autoscaler;

interface Metric {
  type: string;
  resource?: { name?: string; target?: { type?: string; averageUtilization?: number } };
}

interface Spec {
  minReplicas?: number;
  maxReplicas?: number;
  metrics?: Metric[];
}

const specOf = (object: LooseObject) => object.spec as Spec;

/** isUsage reports whether a metric is the CPU usage as a percentage of the request. */
const isUsage = ({ type, resource }: Metric) => type === 'Resource' && resource?.name === 'cpu' && resource.target?.type === 'Utilization';

function valuesOf(object: LooseObject): Values {
  const { minReplicas = 1, maxReplicas = 1, metrics } = specOf(object);
  return { min: String(minReplicas), max: String(maxReplicas), cpu: String(metrics?.find(isUsage)?.resource?.target?.averageUtilization ?? '') };
}

/** autoscaler changes an autoscaler's limits. It keeps metrics that the form does not show. */
export const autoscaler: Edit = {
  title: t.action,
  sections: (object) => [
    {
      title: t.title,
      inputs: autoscalerForm.inputs
        .filter(({ key }) => ['min', 'max', 'cpu'].includes(key))
        .map((input) => (input.key === 'cpu' && (specOf(object).metrics ?? []).some((metric) => !isUsage(metric)) ? { ...input, required: false } : input)),
    },
  ],
  values: valuesOf,
  operations: (object, values) => {
    const before = valuesOf(object);
    const { minReplicas, maxReplicas, metrics = [] } = specOf(object);
    const usage: Metric[] = values.cpu ? [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: Number(values.cpu) } } }] : [];
    return [
      ...(values.min === before.min ? [] : setField('/spec/minReplicas', minReplicas, Number(values.min))),
      ...(values.max === before.max ? [] : setField('/spec/maxReplicas', maxReplicas, Number(values.max))),
      ...(values.cpu === before.cpu ? [] : setField('/spec/metrics', metrics, [...metrics.filter((metric) => !isUsage(metric)), ...usage])),
    ];
  },
};

/** Autoscaler is the dialog for an autoscaler. */
export default function Autoscaler(props: DialogProps) {
  return <EditDialog edit={autoscaler} {...props} />;
}
