import { quantity } from '../../api/quantity';
import { edits } from '../../text/edits';
import { text } from '../../text/en';
import { nameChoices, present, type Form } from './model';

const t = text.forms.claim;
const modes = ['ReadWriteOnce', 'ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOncePod'];

const snapshotGroup = 'snapshot.storage.k8s.io';

const defaultKey = 'storageclass.kubernetes.io/is-default-class';

/** claimForm creates a claim, which requests storage. */
export const claimForm: Form = {
  inputs: [
    {
      key: 'class',
      label: text.facts.storageClass,
      type: 'select',
      choices: [{ value: '', label: t.defaultClass }],
      source: {
        path: () => '/apis/storage.k8s.io/v1/storageclasses',
        choices: (items) =>
          items.map(({ metadata }) => ({ value: metadata.name, label: metadata.annotations?.[defaultKey] === 'true' ? t.isDefault(metadata.name) : metadata.name })),
      },
    },
    { key: 'mode', label: text.facts.accessModes, type: 'select', choices: modes.map((value) => ({ value, label: t.modes[value] ?? value })) },
    { key: 'size', label: t.size, required: true, initial: '1Gi', help: t.sizeHelp, problem: (value) => (quantity(value) > 0 ? undefined : t.sizeInvalid) },
    {
      key: 'snapshot',
      label: edits.snapshot.from,
      type: 'select',
      isShown: ({ snapshot }) => snapshot !== '',
      choices: [{ value: '', label: text.none }],
      source: {
        path: (project) => `/apis/${snapshotGroup}/v1/namespaces/${encodeURIComponent(project)}/volumesnapshots`,
        choices: nameChoices,
      },
    },
  ],
  object: (values) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    spec: {
      accessModes: [values.mode],
      resources: { requests: { storage: values.size } },
      ...present({ storageClassName: values.class }),
      ...(values.snapshot ? { dataSource: { apiGroup: snapshotGroup, kind: 'VolumeSnapshot', name: values.snapshot } } : {}),
    },
  }),
};
