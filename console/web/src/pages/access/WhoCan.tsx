import { ActionGroup, Button, Form, FormSelect, FormSelectOption, Grid, GridItem, StackItem, TextInput } from '@patternfly/react-core';
import { useEffect, useState, type FormEvent } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { whoCan, type Holders, type Question } from '../../api/access';
import { useResources } from '../../api/hooks';
import { access } from '../../text/access';
import { Field } from '../../ui/Field';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import { StackPage } from '../../ui/StackPage';
import { HolderList } from './HolderList';

const t = access.whoCan;
const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection', 'use', 'impersonate', 'bind', 'escalate', '*'];

/** Component shows the subjects that have a permission. The address contains the permission. */
export function Component() {
  const { project: own } = useParams();
  const [query, setQuery] = useSearchParams();
  const resources = useResources();
  const asked = query.get('resource') ?? '';
  const [draft, setDraft] = useState({ verb: query.get('verb') ?? 'get', resource: asked || 'pods', name: query.get('name') ?? '', project: own ?? query.get('project') ?? '' });
  const [result, setResult] = useState<{ holders?: Holders; error?: Error }>();
  const key = query.toString();
  useEffect(() => {
    if (asked === '' || !resources) {
      return undefined;
    }
    let isCurrent = true;
    const [main = '', subresource] = asked.split('/');
    const resource = resources.get(main);
    const name = resource?.name ?? main;
    const question: Question = {
      verb: query.get('verb') ?? 'get', group: resource?.group ?? '', resource: subresource ? `${name}/${subresource}` : name,
      name: query.get('name') ?? '', project: own ?? query.get('project') ?? '',
    };
    setResult(undefined);
    whoCan(question).then(
      (holders) => isCurrent && setResult({ holders }),
      (error: Error) => isCurrent && setResult({ error }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key, resources, own]);
  if (!resources) {
    return <Loading />;
  }
  const ask = (event: FormEvent) => {
    event.preventDefault();
    const values = { verb: draft.verb, resource: draft.resource, name: draft.name.trim(), project: own ? '' : draft.project.trim() };
    setQuery(Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')));
  };
  const ids = [...resources.values()].flatMap(({ id, subresources }) => [id, ...subresources.map((subresource) => `${id}/${subresource}`)]).sort();
  return (
    <StackPage title={t.title} project={own} body={t.body}>
      <StackItem>
        <Form onSubmit={ask} aria-label={t.title}>
          <Grid hasGutter md={6}>
            <GridItem>
              <Field id="who-verb" label={t.verb}>
                <FormSelect id="who-verb" value={draft.verb} onChange={(_, verb) => setDraft({ ...draft, verb })}>
                  {verbs.map((verb) => (
                    <FormSelectOption key={verb} value={verb} label={verb} />
                  ))}
                </FormSelect>
              </Field>
            </GridItem>
            <GridItem>
              <Field id="who-resource" label={t.resource}>
                <FormSelect id="who-resource" value={draft.resource} onChange={(_, resource) => setDraft({ ...draft, resource })}>
                  {ids.map((id) => (
                    <FormSelectOption key={id} value={id} label={id} />
                  ))}
                </FormSelect>
              </Field>
            </GridItem>
            <GridItem>
              <Field id="who-name" label={t.name} help={t.nameHelp}>
                <TextInput id="who-name" value={draft.name} onChange={(_, name) => setDraft({ ...draft, name })} autoComplete="off" />
              </Field>
            </GridItem>
            {own === undefined && (
              <GridItem>
                <Field id="who-project" label={t.project}>
                  <TextInput id="who-project" placeholder={t.anyProject} value={draft.project} onChange={(_, project) => setDraft({ ...draft, project })} autoComplete="off" />
                </Field>
              </GridItem>
            )}
          </Grid>
          <ActionGroup>
            <Button type="submit">{t.find}</Button>
          </ActionGroup>
        </Form>
      </StackItem>
      {asked !== '' && !result && <Loading />}
      {result?.error && (
        <StackItem>
          <Outcome error={result.error} />
        </StackItem>
      )}
      {result?.holders && (
        <StackItem>
          <section aria-label={t.result(query.get('verb') ?? 'get', asked, own ?? query.get('project') ?? '')}>
            <HolderList holders={result.holders} />
          </section>
        </StackItem>
      )}
    </StackPage>
  );
}
