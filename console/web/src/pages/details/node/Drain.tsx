import { Alert, Button, Checkbox, Modal, ModalBody, ModalFooter, ModalHeader, Progress } from '@patternfly/react-core';
import { useEffect, useRef, useState } from 'react';
import { evict, planOf, type EvictionState, type PodOfNode } from '../../../api/drain';
import { useObjects } from '../../../api/hooks';
import { merge } from '../../../api/http';
import { text } from '../../../text/en';
import { nodes } from '../../../text/nodes';
import { DataTable } from '../../../ui/DataTable';
import { FormDialog } from '../../../ui/FormDialog';
import { Loading } from '../../../ui/Loading';
import type { DialogProps } from '../dialogs';

const t = nodes.drain;
const nameOf = (pod: PodOfNode) => `${pod.metadata.namespace}/${pod.metadata.name}`;
const namesOf = (pods: PodOfNode[]) => pods.map(nameOf).join(', ');

/** Drain lets the user select what a drain can delete, and drains a node. */
export default function Drain({ object, path, close }: DialogProps) {
  const node = object.metadata.name;
  const { items, loaded } = useObjects<PodOfNode>('/api/v1/pods', { fieldSelector: `spec.nodeName=${node}` });
  const [mayLose, setMayLose] = useState({ localData: false, unmanaged: false });
  const [draining, setDraining] = useState<PodOfNode[]>();
  const plan = planOf(items);
  const isAllowed = (plan.localData.length === 0 || mayLose.localData) && (plan.unmanaged.length === 0 || mayLose.unmanaged);
  if (draining) {
    return <Evictions node={node} draining={draining} present={items} close={close} />;
  }
  const start = () => merge(path, { spec: { unschedulable: true } }).then(() => setDraining(plan.evicted));
  return (
    <FormDialog variant="medium" title={t.title(node)} body={t.body} action={t.start} isDanger isReady={loaded && isAllowed} submit={start} close={close}>
      {!loaded ? (
        <Loading />
      ) : (
        <>
          <p>{t.evict(plan.evicted.length)}</p>
          {plan.skipped.length > 0 && <p>{t.skipped(plan.skipped.length)}</p>}
          {(['localData', 'unmanaged'] as const).map(
            (key) =>
              plan[key].length > 0 && (
                <Checkbox key={key} id={`drain-${key}`} label={t[key](namesOf(plan[key]))} isChecked={mayLose[key]} onChange={(_, checked) => setMayLose({ ...mayLose, [key]: checked })} />
              ),
          )}
        </>
      )}
    </FormDialog>
  );
}

interface EvictionsProps {
  node: string;
  draining: PodOfNode[];
  /** present contains the node's current pods. */
  present: PodOfNode[];
  close: () => void;
}

/** Evictions evicts a node's pods, and shows the progress. Closing the dialog stops the drain. */
function Evictions({ node, draining, present, close }: EvictionsProps) {
  const [states, setStates] = useState<Record<string, EvictionState>>({});
  const [stopped, setStopped] = useState(false);
  const controller = useRef<AbortController>(null);
  useEffect(() => {
    const { signal } = (controller.current = new AbortController());
    for (const pod of draining) {
      void evict(pod, (state) => setStates((all) => ({ ...all, [pod.metadata.uid]: state })), signal);
    }
    return () => controller.current?.abort();
  }, [draining]);
  const uids = new Set(present.map((pod) => pod.metadata.uid));
  const stateOf = (pod: PodOfNode): EvictionState => (uids.has(pod.metadata.uid) ? (states[pod.metadata.uid] ?? { state: 'waiting' }) : { state: 'gone' });
  const gone = draining.filter((pod) => stateOf(pod).state === 'gone').length;
  const complete = gone === draining.length;
  const stop = () => {
    controller.current?.abort();
    setStopped(true);
  };
  return (
    <Modal variant="medium" isOpen onClose={close} aria-labelledby="drain-title" aria-describedby="drain-body">
      <ModalHeader title={t.title(node)} labelId="drain-title" />
      <ModalBody id="drain-body" tabIndex={0}>
        <Progress title={t.progress} value={gone} max={Math.max(draining.length, 1)} label={t.of(gone, draining.length)} variant={complete ? 'success' : undefined} />
        {complete && <Alert isInline isLiveRegion component="h2" variant="success" title={t.complete} />}
        {stopped && !complete && <Alert isInline isLiveRegion component="h2" variant="warning" title={t.stopped} />}
        <DataTable
          label={t.progress}
          items={draining}
          keyOf={(pod) => pod.metadata.uid}
          empty={t.complete}
          columns={[
            { title: t.pod, cell: nameOf },
            {
              title: t.state,
              cell: (pod) => {
                const { state, message } = stateOf(pod);
                return message ? `${t.states[state]} ${message}` : t.states[state];
              },
            },
          ]}
        />
      </ModalBody>
      <ModalFooter>
        {!complete && !stopped && (
          <Button variant="secondary" onClick={stop}>
            {t.stop}
          </Button>
        )}
        <Button variant="link" onClick={close}>
          {text.close}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
