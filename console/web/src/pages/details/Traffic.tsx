import { ActionGroup, Alert, Button, Form, FormGroup, FormSelect, FormSelectOption, Slider } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { pathOf } from '../../api/discovery';
import { useObjects, useRights } from '../../api/hooks';
import { latest, patch, unchanged } from '../../api/http';
import { commandOf, operationsOf, sharesOf, trafficOf, type Backend } from '../../api/traffic';
import type { Route } from '../../api/routes';
import { text } from '../../text/en';
import { tools } from '../../text/tools';
import { Copyable } from '../../ui/Copyable';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import type { TabProps } from './tabs';

const t = tools.traffic;

/** maxBackends is the maximum number of a route's services. */
const maxBackends = 4;

/** Traffic is the tab that divides a route's requests between services. */
export default function Traffic({ resource, project = '', object }: TabProps) {
  const [base, setBase] = useState(object);
  const rights = useRights(project);
  const services = useObjects(`/api/v1/namespaces/${encodeURIComponent(project)}/services`);
  const [edited, setEdited] = useState<Backend[]>();
  const { isBusy, isDone, error, send, reset } = useRequest();
  const newest = latest(object, base);
  const current = trafficOf(newest as unknown as Route);
  const backends = edited ?? current;
  const conflicts = edited !== undefined && JSON.stringify(current) !== JSON.stringify(trafficOf(base as unknown as Route));
  const shares = sharesOf(backends);
  const mayPatch = rights.may('patch', resource.group, resource.name, object.metadata.name);
  const edit = (next: Backend[]) => {
    if (edited === undefined) {
      setBase(newest);
    }
    setEdited(next);
    reset();
  };
  const save = (event: FormEvent) => {
    event.preventDefault();
    send(async () => {
      setBase(await patch<typeof object>(pathOf(resource, project, object.metadata.name), [unchanged(conflicts ? base : newest), ...operationsOf(backends)]));
      setEdited(undefined);
    });
  };
  const others = services.items.map(({ metadata }) => metadata.name).filter((name) => !backends.some((backend) => backend.name === name));
  return (
    <Form onSubmit={save} aria-label={t.tab}>
      <p>{backends.length > 1 ? t.body : t.single}</p>
      {backends.map((backend, index) => (
        <FormGroup key={backend.name} label={`${backend.name}: ${t.percent(shares[index] ?? 0)}`} role="group">
          <Slider
            value={backend.weight}
            min={0}
            max={256}
            isDisabled={!mayPatch || backends.length < 2}
            thumbAriaLabel={`${t.share(backend.name)}: ${t.percent(shares[index] ?? 0)}`}
            onChange={(_, weight) => edit(backends.map((other, i) => (i === index ? { ...other, weight: Math.round(weight) } : other)))}
          />
          {mayPatch && index > 0 && (
            <Button variant="link" isInline onClick={() => edit(backends.filter((_, i) => i !== index))}>
              {t.remove(backend.name)}
            </Button>
          )}
        </FormGroup>
      ))}
      {mayPatch && backends.length < maxBackends && others.length > 0 && (
        <FormGroup label={t.add} fieldId="traffic-add">
          <FormSelect id="traffic-add" value="" onChange={(_, name) => name && edit([...backends, { name, weight: 0 }])}>
            <FormSelectOption value="" label={text.forms.route.choose} />
            {others.map((name) => (
              <FormSelectOption key={name} value={name} label={name} />
            ))}
          </FormSelect>
        </FormGroup>
      )}
      {conflicts && <Alert isInline component="h2" variant="warning" isLiveRegion title={text.editor.changed} />}
      <Outcome error={error} isDone={isDone} done={text.editor.saved} />
      {mayPatch && (
        <>
          <ActionGroup>
            <Button type="submit" isLoading={isBusy} isDisabled={isBusy || edited === undefined}>
              {text.save}
            </Button>
            <Button
              variant="link"
              isDisabled={edited === undefined}
              onClick={() => {
                setEdited(undefined);
                reset();
              }}
            >
              {text.editor.reload}
            </Button>
          </ActionGroup>
          <div>
            <p>{t.command}</p>
            <Copyable label={t.command}>
              {commandOf(object.metadata.name, project, backends)}
            </Copyable>
          </div>
        </>
      )}
    </Form>
  );
}
