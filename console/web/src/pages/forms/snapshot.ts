import { edits } from '../../text/edits';
import { text } from '../../text/en';
import { namesOf, present, type Form } from './model';

const t = edits.snapshot;

const defaultKey = 'snapshot.storage.kubernetes.io/is-default-class';

/** snapshotForm creates a snapshot of a claim's volume. */
export const snapshotForm: Form = {
  inputs: [
    {
      key: 'claim',
      label: t.claim,
      type: 'select',
      required: true,
      choices: [{ value: '', label: text.forms.route.choose }],
      source: namesOf('persistentvolumeclaims'),
    },
    {
      key: 'class',
      label: t.class,
      type: 'select',
      choices: [{ value: '', label: text.forms.claim.defaultClass }],
      source: {
        path: () => '/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses',
        choices: (items) =>
          items.map(({ metadata }) => ({ value: metadata.name, label: metadata.annotations?.[defaultKey] === 'true' ? text.forms.claim.isDefault(metadata.name) : metadata.name })),
      },
    },
  ],
  object: (values) => ({
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    spec: { source: { persistentVolumeClaimName: values.claim }, ...present({ volumeSnapshotClassName: values.class }) },
  }),
};
