import { TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { initialParameters, process, tagsOf, useTemplate, type Parameter, type Template } from '../../api/catalog';
import { templateCommandOf } from '../../api/equivalent';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Field } from '../../ui/Field';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { CreateForm } from './CreateForm';
import { Command } from './fields';
import { ItemIcon } from './ItemIcon';

/** Component creates a template's objects. */
export function Component() {
  const { namespace = '', name = '' } = useParams();
  const template = useTemplate(namespace, name);
  useTitle(name, text.catalog.title);
  if (template.error) {
    return <Failure error={template.error} />;
  }
  return template.data ? <TemplateForm template={template.data} /> : <Loading />;
}

function TemplateForm({ template }: { template: Template }) {
  const [query] = useSearchParams();
  const [project, setProject] = useState(query.get('project') ?? '');
  const parameters = template.parameters ?? [];
  const [values, setValues] = useState(() => initialParameters(parameters, query.get('parameters')));
  const missing = (p: Parameter) => p.required === true && !p.generate && values[p.name] === '';
  const annotations = template.metadata.annotations ?? {};
  const { command, lacksSecrets } = templateCommandOf(template, project, values);
  return (
    <CreateForm
      title={annotations['openshift.io/display-name'] ?? template.metadata.name}
      icon={<ItemIcon kind="template" icon={{ name: annotations.iconClass ?? '' }} tags={tagsOf(annotations)} />}
      origin={template.metadata.namespace}
      description={annotations.description ?? ''}
      project={project}
      setProject={setProject}
      valid={!parameters.some(missing)}
      objects={async () => {
        const processed = await process(template, project, values);
        return { objects: processed.objects ?? [], message: processed.message };
      }}
    >
      {parameters.map((p) => (
        <Field key={p.name} id={`parameter-${p.name}`} label={p.displayName ?? p.name} help={p.description} required={p.required && !p.generate} invalid={missing(p) ? text.catalog.required : undefined}>
          <TextInput
            id={`parameter-${p.name}`}
            value={values[p.name] ?? ''}
            autoComplete="off"
            placeholder={p.generate ? text.catalog.generated : undefined}
            validated={missing(p) ? 'error' : 'default'}
            aria-describedby={`parameter-${p.name}-help`}
            onChange={(_, value) => setValues({ ...values, [p.name]: value })}
          />
        </Field>
      ))}
      {project !== '' && !parameters.some(missing) && <Command command={command} note={lacksSecrets ? text.catalog.variables : undefined} />}
    </CreateForm>
  );
}
