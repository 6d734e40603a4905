import { text } from '../../text/en';
import { pairsOf, type Form } from './model';
import { pairsProblem } from './secret';

/** configMapForm creates a config map. */
export const configMapForm: Form = {
  inputs: [{ key: 'pairs', label: text.forms.secret.data, type: 'pairs', required: true, problem: pairsProblem }],
  object: (values) => ({ apiVersion: 'v1', kind: 'ConfigMap', data: Object.fromEntries(pairsOf(values.pairs)) }),
};
