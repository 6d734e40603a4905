import { Checkbox, ClipboardCopy, FormGroup, FormSelect, FormSelectOption, NumberInput, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { buildersOf, useImageStream, type ImageStream } from '../../api/catalog';
import { validName } from '../../api/projects';
import { commandOf, objectsOf, validURI, type Source } from '../../api/source';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { CreateForm, Field } from './CreateForm';

const maxPort = 65535;

/** Component creates an application that a builder image builds from source. */
export function Component() {
  const { namespace = '', name = '' } = useParams();
  const stream = useImageStream(namespace, name);
  useTitle(name, text.catalog.title);
  if (stream.error) {
    return <Failure error={stream.error} />;
  }
  return stream.data ? <BuilderForm stream={stream.data} /> : <Loading />;
}

function BuilderForm({ stream }: { stream: ImageStream }) {
  const [query] = useSearchParams();
  const [project, setProject] = useState(query.get('project') ?? '');
  const tags = buildersOf(stream);
  const [source, setSource] = useState<Source>({
    name: stream.metadata.name,
    namespace: stream.metadata.namespace ?? '',
    stream: stream.metadata.name,
    tag: tags[0]?.name ?? 'latest',
    uri: '',
    ref: '',
    contextDir: '',
    port: 8080,
    route: true,
  });
  const change = (part: Partial<Source>) => setSource({ ...source, ...part });
  const sample = tags.find((tag) => tag.name === source.tag)?.annotations ?? {};
  const nameInvalid = source.name !== '' && !validName(source.name) ? text.projects.nameInvalid : undefined;
  const uriInvalid = source.uri !== '' && !validURI(source.uri) ? text.catalog.uriInvalid : undefined;
  const valid = validName(source.name) && validURI(source.uri);
  const built = stream.status?.tags?.some((tag) => tag.tag === source.tag && tag.items && tag.items.length > 0);
  return (
    <CreateForm
      title={stream.metadata.annotations?.['openshift.io/display-name'] ?? stream.metadata.name}
      origin={stream.metadata.namespace}
      description={sample.description ?? ''}
      project={project}
      setProject={setProject}
      valid={valid}
      objects={() => Promise.resolve({ objects: objectsOf(source), message: built ? undefined : text.catalog.noImage(source.stream, source.tag) })}
    >
      <FormGroup label={text.catalog.version} fieldId="builder-tag">
        <FormSelect id="builder-tag" value={source.tag} onChange={(_, tag) => change({ tag })}>
          {tags.map((tag) => (
            <FormSelectOption key={tag.name} value={tag.name} label={tag.annotations?.['openshift.io/display-name'] ?? tag.name} />
          ))}
        </FormSelect>
      </FormGroup>
      <Field id="builder-name" label={text.catalog.applicationName} required invalid={nameInvalid} help={text.catalog.nameHelp}>
        <TextInput id="builder-name" value={source.name} validated={nameInvalid ? 'error' : 'default'} aria-describedby="builder-name-help" onChange={(_, name) => change({ name })} />
      </Field>
      <Field id="builder-uri" label={text.catalog.repository} required invalid={uriInvalid} help={sample.sampleRepo ? text.catalog.sample(sample.sampleRepo) : undefined}>
        <TextInput id="builder-uri" value={source.uri} validated={uriInvalid ? 'error' : 'default'} aria-describedby="builder-uri-help" onChange={(_, uri) => change({ uri: uri.trim() })} />
      </Field>
      <Field id="builder-ref" label={text.catalog.reference} help={text.catalog.referenceHelp}>
        <TextInput id="builder-ref" value={source.ref} onChange={(_, ref) => change({ ref: ref.trim() })} />
      </Field>
      <Field id="builder-dir" label={text.catalog.contextDir} help={text.catalog.contextDirHelp}>
        <TextInput id="builder-dir" value={source.contextDir} onChange={(_, contextDir) => change({ contextDir: contextDir.trim() })} />
      </Field>
      <FormGroup label={text.catalog.port} fieldId="builder-port">
        <NumberInput
          inputProps={{ id: 'builder-port' }}
          inputAriaLabel={text.catalog.port}
          minusBtnAriaLabel="-1"
          plusBtnAriaLabel="+1"
          min={1}
          max={maxPort}
          value={source.port}
          onMinus={() => change({ port: source.port - 1 })}
          onPlus={() => change({ port: source.port + 1 })}
          onChange={(event) => change({ port: Math.min(maxPort, Math.max(1, Number((event.target as HTMLInputElement).value) || 1)) })}
        />
      </FormGroup>
      <Checkbox id="builder-route" label={text.catalog.route} isChecked={source.route} onChange={(_, route) => change({ route })} />
      {valid && project !== '' && (
        <FormGroup label={text.import.command}>
          <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel={text.import.command}>
            {commandOf(source, project)}
          </ClipboardCopy>
        </FormGroup>
      )}
    </CreateForm>
  );
}
