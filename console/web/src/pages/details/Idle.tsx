import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { idle, targetsOf } from '../../api/idle';
import { text } from '../../text/en';
import { tools } from '../../text/tools';
import { Copyable } from '../../ui/Copyable';
import { DataTable } from '../../ui/DataTable';
import { Loading } from '../../ui/Loading';
import type { DialogProps } from './dialogs';

const t = tools.idle;

/** Idle requests confirmation before a service becomes idle. */
export default function Idle({ object, close }: DialogProps) {
  const { name, namespace } = object.metadata;
  const { selector, clusterIP } = object.spec as { selector?: object; clusterIP?: string };
  const refusal = Object.keys(selector ?? {}).length === 0 ? t.noSelector : clusterIP === 'None' ? t.headless : '';
  const { data, error } = useQuery({ queryKey: ['idle', object.metadata.uid], queryFn: () => targetsOf(object), enabled: refusal === '', staleTime: 0, retry: false });
  const [failure, setFailure] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const run = () => {
    setBusy(true);
    idle(object, data ?? []).then(close, (cause: Error) => {
      setFailure(cause);
      setBusy(false);
    });
  };
  const problem = failure ?? error;
  return (
    <Modal variant="small" isOpen onClose={close} aria-labelledby="idle-title" aria-describedby="idle-body">
      <ModalHeader title={t.title(name)} labelId="idle-title" />
      <ModalBody id="idle-body">
        {refusal ? (
          <p>{refusal}</p>
        ) : !data ? (
          !error && <Loading />
        ) : (
          <>
            <p>{t.body}</p>
            <DataTable
              label={t.target}
              items={data}
              keyOf={(target) => `${target.kind} ${target.name}`}
              empty={t.none}
              columns={[
                { title: t.target, cell: (target) => `${target.kind} ${target.name}` },
                { title: t.replicas, cell: (target) => target.replicas },
              ]}
            />
            <p>{t.command}</p>
            <Copyable label={t.command}>
              {`oc idle ${name} -n ${namespace}`}
            </Copyable>
          </>
        )}
        {problem && <Alert isInline isLiveRegion variant="danger" title={problem.message} />}
      </ModalBody>
      <ModalFooter>
        <Button isDisabled={busy || !data?.length} isLoading={busy} onClick={run}>
          {t.confirm}
        </Button>
        <Button variant="link" onClick={close}>
          {text.cancel}
        </Button>
      </ModalFooter>
    </Modal>
  );
}
