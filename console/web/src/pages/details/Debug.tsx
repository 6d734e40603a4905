import { Alert, Checkbox } from '@patternfly/react-core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { accountMayRun, containersToDebug, debugPod } from '../../api/debug';
import { create } from '../../api/http';
import type { KubeObject } from '../../api/types';
import { tools } from '../../text/tools';
import { ContainerSelect } from '../../ui/ContainerSelect';
import { Copyable } from '../../ui/Copyable';
import { FormDialog } from '../../ui/FormDialog';
import type { DialogProps } from './dialogs';

const t = tools.debug;

/** Debug starts a copy of a pod with a shell, and opens the copy's terminal. */
export default function Debug({ object, close }: DialogProps) {
  const { name, namespace = '' } = object.metadata;
  const navigate = useNavigate();
  const containers = containersToDebug(object);
  const [container, setContainer] = useState(containers[0] ?? '');
  const [asRoot, setAsRoot] = useState(false);
  const [warned, setWarned] = useState(false);
  const start = async () => {
    if (!warned && !(await accountMayRun(object))) {
      setWarned(true);
      return;
    }
    const pod = debugPod(object, container, asRoot);
    const { name: podName } = pod.metadata as { name: string };
    await create<KubeObject>(`/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`, podName, pod);
    close();
    void navigate(`/project/${namespace}/pods/${podName}/terminal`);
  };
  return (
    <FormDialog title={t.title(name)} body={t.body} action={warned ? t.startAnyway : t.start} isDanger={warned} isReady={container !== ''} submit={start} close={close}>
      {containers.length > 1 && <ContainerSelect containers={containers} value={container} onChange={setContainer} />}
      <Checkbox id="debug-root" label={t.root} isChecked={asRoot} onChange={(_, checked) => setAsRoot(checked)} />
      <p>{t.command}</p>
      <Copyable label={t.command}>
        {`oc debug ${object.kind.toLowerCase()}/${name} -n ${namespace} -c ${container}${asRoot ? ' --as-root' : ''}`}
      </Copyable>
      {warned && (
        <Alert isInline isLiveRegion component="h2" variant="warning" title={t.excessive}>
          {t.excessiveHelp}
        </Alert>
      )}
    </FormDialog>
  );
}
