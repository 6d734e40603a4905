import { Checkbox, FormGroup, FormSelect, FormSelectOption, TextArea, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useLocation, useSearchParams } from 'react-router';
import { validName } from '../../api/projects';
import { dockerCommandOf, dockerObjects, originOf, validURI, type Dockerfile } from '../../api/source';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Field } from '../../ui/Field';
import { useTitle } from '../../ui/useTitle';
import { CreateForm } from './CreateForm';
import { Command, GitFields, NameField, PortField } from './fields';

const t = images.dockerfile;

/** Component creates an application that is built from a Dockerfile. */
export function Component() {
  useTitle(text.catalog.dockerfile, text.catalog.title);
  const [query] = useSearchParams();
  const { state } = useLocation();
  const [project, setProject] = useState(query.get('project') ?? '');
  const [isInline, setIsInline] = useState(false);
  const [values, setValues] = useState<Dockerfile>({ name: '', ...originOf(state), text: '', path: '', port: 8080, route: true });
  const change = (part: Partial<Dockerfile>) => setValues({ ...values, ...part });
  const choose = (chosen: string) => {
    setProject(chosen);
    change({ secret: '' });
  };
  const wanted = isInline ? values : { ...values, text: '' };
  const hasBase = /^\s*from\s+\S/im.test(values.text);
  const valid = validName(values.name) && (isInline ? hasBase : validURI(values.uri));
  const invalid = values.text !== '' && !hasBase ? t.textInvalid : undefined;
  return (
    <CreateForm title={text.catalog.dockerfile} description={t.body} project={project} setProject={choose} valid={valid} objects={() => Promise.resolve({ objects: dockerObjects(wanted) })}>
      <NameField name={values.name} change={(name) => change({ name })} />
      <FormGroup label={t.from} fieldId="dockerfile-from">
        <FormSelect id="dockerfile-from" value={isInline ? 'text' : 'git'} onChange={(_, from) => setIsInline(from === 'text')}>
          {Object.entries(t.froms).map(([value, label]) => (
            <FormSelectOption key={value} value={value} label={label} />
          ))}
        </FormSelect>
      </FormGroup>
      {isInline ? (
        <Field id="dockerfile-text" label={t.text} required invalid={invalid}>
          <TextArea
            id="dockerfile-text"
            className="console-mono"
            rows={8}
            resizeOrientation="vertical"
            value={values.text}
            validated={invalid ? 'error' : 'default'}
            aria-describedby={invalid ? 'dockerfile-text-help' : undefined}
            onChange={(_, content) => change({ text: content })}
          />
        </Field>
      ) : (
        <>
          <GitFields project={project} origin={values} change={change} />
          <Field id="dockerfile-path" label={t.path} help={t.pathHelp}>
            <TextInput id="dockerfile-path" value={values.path} aria-describedby="dockerfile-path-help" onChange={(_, path) => change({ path: path.trim() })} />
          </Field>
        </>
      )}
      <PortField port={values.port} change={(port) => change({ port })} />
      <Checkbox id="dockerfile-route" label={text.catalog.route} isChecked={values.route} onChange={(_, route) => change({ route })} />
      {valid && project !== '' && !isInline && values.path === '' && <Command command={dockerCommandOf(values, project)} />}
    </CreateForm>
  );
}
