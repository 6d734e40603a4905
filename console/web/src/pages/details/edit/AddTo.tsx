import { Alert, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useState } from 'react';
import { pathOf, type Resource, type Resources } from '../../../api/discovery';
import { useObjects, useResources } from '../../../api/hooks';
import type { LooseObject } from '../../../api/types';
import { workloadIDs } from '../../../api/workloads';
import { attach as t } from '../../../text/attach';
import { text } from '../../../text/en';
import { FormDialog } from '../../../ui/FormDialog';
import { Loading } from '../../../ui/Loading';
import type { DialogProps } from '../dialogs';
import { attachTo } from './attachment';
import { EditDialog } from './EditDialog';
import { sourceOfKind } from './sources';

/** AddTo adds a claim, a config map or a secret to a workload that the user selects. */
export default function AddTo({ object, close }: DialogProps) {
  const resources = useResources();
  return resources ? <Choose object={object} resources={resources} close={close} /> : <Loading />;
}

function Choose({ object, resources, close }: { object: LooseObject; resources: Resources; close: () => void }) {
  const { name, namespace } = object.metadata;
  // The IDs are constant, so the hooks are always called in the same order.
  const lists = workloadIDs.map((id) => {
    const resource = resources.get(id) as Resource;
    return { resource, ...useObjects<LooseObject>(pathOf(resource, namespace)) };
  });
  const workloads = lists.flatMap(({ resource, items }) => items.map((workload) => ({ key: `${resource.kind} ${workload.metadata.name}`, resource, workload })));
  workloads.sort((a, b) => a.workload.metadata.name.localeCompare(b.workload.metadata.name));
  const [key, setKey] = useState('');
  const [isChosen, setIsChosen] = useState(false);
  const chosen = workloads.find((candidate) => candidate.key === key);
  const source = sourceOfKind[object.kind] ?? '';
  const [edit] = useState(() => attachTo({ source, [source]: name }));
  if (chosen && isChosen) {
    const { resource, workload } = chosen;
    return <EditDialog edit={edit} object={workload} path={pathOf(resource, namespace, workload.metadata.name)} close={close} />;
  }
  return (
    <FormDialog title={t.toApplication} action={t.next} isReady={chosen !== undefined} submit={() => Promise.resolve(setIsChosen(true))} close={close}>
      {!lists.every(({ loaded }) => loaded) ? (
        <Loading />
      ) : workloads.length === 0 ? (
        <Alert isInline variant="info" component="h2" title={t.noApplication} />
      ) : (
        <FormSelect aria-label={t.application} value={key} onChange={(_, value) => setKey(value)}>
          <FormSelectOption value="" label={text.forms.route.choose} isDisabled />
          {workloads.map((candidate) => (
            <FormSelectOption key={candidate.key} value={candidate.key} label={candidate.key} />
          ))}
        </FormSelect>
      )}
    </FormDialog>
  );
}
