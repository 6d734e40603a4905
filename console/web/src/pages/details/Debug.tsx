import { Alert, Button, Checkbox, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { accountMayRun, containersToDebug, debugPod } from '../../api/debug';
import { create } from '../../api/http';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { tools } from '../../text/tools';
import { Copyable } from '../../ui/Copyable';
import { ContainerSelect } from '../../ui/ContainerSelect';
import type { DialogProps } from './dialogs';

const t = tools.debug;

/** Debug starts a copy of a pod with a shell, and opens its terminal. */
export default function Debug({ object, close }: DialogProps) {
  const { name, namespace = '' } = object.metadata;
  const navigate = useNavigate();
  const containers = containersToDebug(object);
  const [container, setContainer] = useState(containers[0] ?? '');
  const [asRoot, setAsRoot] = useState(false);
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const [warned, setWarned] = useState(false);
  const start = async () => {
    setBusy(true);
    setError(undefined);
    const pod = debugPod(object, container, asRoot);
    const { name: podName } = pod.metadata as { name: string };
    try {
      if (warned || (await accountMayRun(object))) {
        await create<KubeObject>(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`, podName, pod);
        close();
        void navigate(`/project/${namespace}/pods/${podName}/terminal`);
        return;
      }
      setWarned(true);
    } catch (cause) {
      setError(cause as Error);
    }
    setBusy(false);
  };
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="debug-title" aria-describedby="debug-body">
      <ModalHeader title={t.title(name)} labelId="debug-title" />
      <ModalBody id="debug-body">
        <p>{t.body}</p>
        {containers.length > 1 && <ContainerSelect containers={containers} value={container} onChange={setContainer} />}
        <Checkbox id="debug-root" label={t.root} isChecked={asRoot} onChange={(_, checked) => setAsRoot(checked)} />
        <p>{t.command}</p>
        <Copyable label={t.command}>
          {`oc debug ${object.kind.toLowerCase()}/${name} -n ${namespace} -c ${container}${asRoot ? ' --as-root' : ''}`}
        </Copyable>
        {warned && (
          <Alert isInline isLiveRegion variant="warning" title={t.excessive}>
            {t.excessiveHelp}
          </Alert>
        )}
        {error && <Alert isInline isLiveRegion variant="danger" title={error.message} />}
      </ModalBody>
      <ModalFooter>
        <Button variant={warned ? 'danger' : 'primary'} isDisabled={busy || container === ''} isLoading={busy} onClick={() => void start()}>
          {warned ? t.startAnyway : t.start}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
