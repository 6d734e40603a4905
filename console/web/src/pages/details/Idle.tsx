import { useQuery } from '@tanstack/react-query';
import { idle, targetsOf } from '../../api/idle';
import { tools } from '../../text/tools';
import { Copyable } from '../../ui/Copyable';
import { DataTable } from '../../ui/DataTable';
import { FormDialog } from '../../ui/FormDialog';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import type { DialogProps } from './dialogs';

const t = tools.idle;

/** Idle requests confirmation before a service becomes idle. */
export default function Idle({ object, close }: DialogProps) {
  const { name, namespace } = object.metadata;
  const { selector, clusterIP } = object.spec as { selector?: object; clusterIP?: string };
  const refusal = Object.keys(selector ?? {}).length === 0 ? t.noSelector : clusterIP === 'None' ? t.headless : undefined;
  const { data, error, isLoading } = useQuery({ queryKey: ['idle', object.metadata.uid], queryFn: () => targetsOf(object), enabled: refusal === undefined, staleTime: 0, retry: false });
  return (
    <FormDialog title={t.title(name)} body={refusal ?? t.body} action={t.confirm} isReady={(data?.length ?? 0) > 0} submit={() => idle(object, data ?? []).then(close)} close={close}>
      {isLoading && <Loading />}
      {data && (
        <>
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
      <Outcome error={error} />
    </FormDialog>
  );
}
