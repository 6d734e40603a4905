import { ActionGroup, Alert, Button, Checkbox, EmptyState, EmptyStateBody, Form, FormGroup, Grid, GridItem, Label, StackItem, TextInput } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { useSearchParams } from 'react-router';
import { get } from '../../api/http';
import { admin } from '../../text/admin';
import { DataTable } from '../../ui/DataTable';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { StackPage } from '../../ui/StackPage';

const t = admin.audit;

const fields = ['user', 'verb', 'resource', 'namespace', 'name'] as const;
const labels: Record<(typeof fields)[number], string> = { user: t.user, verb: t.verb, resource: t.resource, namespace: t.project, name: t.name };

interface Event {
  time: string;
  user: string;
  verb: string;
  resource?: string;
  namespace?: string;
  name?: string;
  path: string;
  address?: string;
  code?: number;
  /** master is the name of the master that logged the request, if there are several. */
  master?: string;
}

interface Result {
  enabled: boolean;
  events: Event[];
  complete: boolean;
  /** missing lists the masters whose logs could not be searched. */
  missing?: { master: string; reason: string }[];
}

/** Component searches the audit logs of all masters. The address contains the search terms. */
export function Component() {
  const [query, setQuery] = useSearchParams();
  const [draft, setDraft] = useState<Record<string, string>>(() => Object.fromEntries(query));
  const path = `/slipway/audit?${query}`;
  const { data, error, refetch } = useQuery({ queryKey: [path], queryFn: () => get<Result>(path), staleTime: 0, retry: false });
  if (error) {
    return <Failure error={error} retry={() => void refetch()} />;
  }
  const search = (event: FormEvent) => {
    event.preventDefault();
    setQuery(Object.fromEntries(Object.entries(draft).map(([key, value]) => [key, value.trim()] as const).filter(([, value]) => value !== '')));
    void refetch();
  };
  if (data && !data.enabled) {
    return (
      <StackPage title={t.title}>
        <EmptyState headingLevel="h2" titleText={t.off}>
          <EmptyStateBody>{t.offBody}</EmptyStateBody>
        </EmptyState>
      </StackPage>
    );
  }
  return (
    <StackPage title={t.title} body={t.body}>
      <StackItem>
        <Form onSubmit={search} aria-label={t.search}>
          <Grid hasGutter md={4}>
            {fields.map((field) => (
              <GridItem key={field}>
                <FormGroup label={labels[field]} fieldId={`audit-${field}`}>
                  <TextInput id={`audit-${field}`} value={draft[field] ?? ''} onChange={(_, value) => setDraft({ ...draft, [field]: value })} autoComplete="off" />
                </FormGroup>
              </GridItem>
            ))}
          </Grid>
          <Checkbox id="audit-failed" label={t.failed} isChecked={draft.failed === 'true'} onChange={(_, checked) => setDraft({ ...draft, failed: checked ? 'true' : '' })} />
          <ActionGroup>
            <Button type="submit">{t.search}</Button>
          </ActionGroup>
        </Form>
      </StackItem>
      {!data ? (
        <Loading />
      ) : (
        <StackItem>
          {data.missing && (
            <Alert isInline component="h2" variant="warning" title={t.missing(data.missing.map(({ master }) => master))}>
              {data.missing.map(({ master, reason }) => (
                <p key={master}>{`${master}: ${reason}`}</p>
              ))}
            </Alert>
          )}
          {!data.complete && <Alert isInline component="h2" variant="info" title={t.more} />}
          <DataTable
            label={t.title}
            items={data.events.map((event, index) => ({ ...event, index }))}
            keyOf={({ index }) => String(index)}
            empty={t.none}
            columns={[
              { title: t.time, cell: ({ time }) => new Date(time).toLocaleString() },
              { title: t.user, cell: ({ user }) => user },
              { title: t.verb, cell: ({ verb }) => verb },
              { title: t.resource, cell: ({ resource, path: target }) => resource ?? target },
              { title: t.project, cell: ({ namespace }) => namespace ?? '-' },
              { title: t.name, cell: ({ name }) => name ?? '-' },
              ...(data.events.some(({ master }) => master) ? [{ title: t.master, cell: ({ master }: Event) => master ?? '-' }] : []),
              { title: t.address, cell: ({ address }) => address ?? '-' },
              { title: t.result, cell: ({ code }) => <Label color={(code ?? 0) >= 400 ? 'red' : 'green'}>{code ?? '-'}</Label> },
            ]}
          />
        </StackItem>
      )}
    </StackPage>
  );
}
