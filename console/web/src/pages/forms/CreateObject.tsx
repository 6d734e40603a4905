import { ActionGroup, Button, Form as Fields, PageSection, TextInput, Title } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import { pathOf, type Resource } from '../../api/discovery';
import { useResources } from '../../api/hooks';
import { create } from '../../api/http';
import { words } from '../../app/navigation';
import { text } from '../../text/en';
import { Field } from '../../ui/Field';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import { useTitle } from '../../ui/useTitle';
import { Component as NotFound } from '../NotFound';
import { linkTo } from '../../app/links';
import { forms } from './forms';
import { isForm } from './ids';
import { InputField } from './InputField';
import { initialValues, isComplete, shownInputs, type Form } from './model';

/** Component creates an object with a form. */
export function Component() {
  const { project = '', resource: id = '' } = useParams();
  const resources = useResources();
  const resource = resources?.get(id);
  const form = isForm(id) ? forms[id] : undefined;
  if (!resources) {
    return <Loading />;
  }
  return resource && form ? <CreateObject key={`${project} ${id}`} project={project} resource={resource} form={form} /> : <NotFound />;
}

const namePattern = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

function CreateObject({ project, resource, form }: { project: string; resource: Resource; form: Form }) {
  const title = text.list.create(words(resource.kind));
  useTitle(title, project);
  const navigate = useNavigate();
  const [name, setName] = useState('');
  const [query] = useSearchParams();
  const [values, setValues] = useState(() => initialValues(form, query));
  const { isBusy, error, send, reset } = useRequest();
  const invalid = name !== '' && !namePattern.test(name) ? text.forms.nameInvalid : undefined;
  const isReady = name !== '' && !invalid && isComplete(form, values);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) {
      return;
    }
    const object = form.object(values);
    const version = object.apiVersion.split('/').pop() ?? resource.version;
    send(async () => {
      await create(pathOf({ ...resource, version }, project), name, { ...object, metadata: { name, namespace: project } });
      void navigate(linkTo(resource, project, name));
    });
  };
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{title}</Title>
      </PageSection>
      <PageSection isFilled>
        <Fields onSubmit={submit} onChange={() => error && reset()} isWidthLimited>
          <Field id="object-name" label={text.name} required invalid={invalid} help={text.forms.nameHelp}>
            <TextInput
              id="object-name"
              isRequired
              autoComplete="off"
              value={name}
              validated={invalid ? 'error' : 'default'}
              aria-describedby="object-name-help"
              onChange={(_, value) => setName(value)}
            />
          </Field>
          {shownInputs(form, values).map((input) => (
            <InputField key={input.key} input={input} project={project} values={values} change={(value) => setValues({ ...values, [input.key]: value })} />
          ))}
          <Outcome error={error} />
          <ActionGroup>
            <Button type="submit" isDisabled={isBusy || !isReady} isLoading={isBusy}>
              {text.create}
            </Button>
            <Button variant="secondary" onClick={() => void navigate(`/project/${project}/import?kind=${resource.id}`)}>
              {text.forms.byYAML}
            </Button>
            <Button variant="link" onClick={() => void navigate(-1)}>
              {text.cancel}
            </Button>
          </ActionGroup>
        </Fields>
      </PageSection>
    </>
  );
}
