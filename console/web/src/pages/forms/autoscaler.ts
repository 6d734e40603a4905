import { autoscalerTarget } from '../../app/constants';
import { text } from '../../text/en';
import { count, nameChoices, type Form, type Source } from './model';

const t = text.forms.autoscaler;

/** kinds maps the kinds of scalable workloads to their API version and collection. */
const kinds: Record<string, [apiVersion: string, collection: string]> = {
  Deployment: ['apps/v1', 'deployments'],
  DeploymentConfig: ['apps.openshift.io/v1', 'deploymentconfigs'],
  StatefulSet: ['apps/v1', 'statefulsets'],
};

const targets = (kind: string): Source => ({
  path: (project) => `/apis/${kinds[kind]?.[0]}/namespaces/${encodeURIComponent(project)}/${kinds[kind]?.[1]}`,
  choices: nameChoices,
});

/** autoscalerForm creates an autoscaler that scales a workload by the CPU usage of its pods. */
export const autoscalerForm: Form = {
  inputs: [
    { key: 'kind', label: t.kind, type: 'select', choices: Object.keys(kinds).map((value) => ({ value, label: value })) },
    ...Object.keys(kinds).map((kind) => ({
      key: `target${kind}`,
      label: kind,
      type: 'select' as const,
      required: true,
      choices: [{ value: '', label: text.forms.route.choose }],
      source: targets(kind),
      isShown: (values: Readonly<Record<string, string>>) => values.kind === kind,
    })),
    { key: 'min', label: t.min, type: 'number', required: true, initial: '1', problem: count(1) },
    { key: 'max', label: t.max, type: 'number', required: true, initial: '3', problem: count(1) },
    { key: 'cpu', label: t.cpu, type: 'number', required: true, initial: autoscalerTarget(), help: t.cpuHelp, problem: count(1) },
  ],
  object: (values) => ({
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    spec: {
      scaleTargetRef: { apiVersion: kinds[values.kind ?? '']?.[0], kind: values.kind, name: values[`target${values.kind}`] },
      minReplicas: Number(values.min),
      maxReplicas: Number(values.max),
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: Number(values.cpu) } } }],
    },
  }),
};
