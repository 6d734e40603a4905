import { Checkbox, FormGroup, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useState } from 'react';
import { useLocation, useParams, useSearchParams } from 'react-router';
import { buildersOf, useImageStream, type ImageStream } from '../../api/catalog';
import { validName } from '../../api/projects';
import { commandOf, linkedOrigin, objectsOf, originOf, validURI, type Source } from '../../api/source';
import { text } from '../../text/en';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { useTitle } from '../../ui/useTitle';
import { CreateForm } from './CreateForm';
import { Command, GitFields, NameField, PortField } from './fields';
import { ItemIcon } from './ItemIcon';

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
  const { state } = useLocation();
  const [project, setProject] = useState(query.get('project') ?? '');
  const tags = buildersOf(stream);
  const [source, setSource] = useState<Source>({
    name: query.get('name') ?? stream.metadata.name,
    namespace: stream.metadata.namespace ?? '',
    stream: stream.metadata.name,
    tag: (tags.find(({ name }) => name === query.get('tag')) ?? tags[0])?.name ?? 'latest',
    ...(state ? originOf(state) : linkedOrigin(query)),
    port: 8080,
    route: true,
  });
  const change = (part: Partial<Source>) => setSource({ ...source, ...part });
  const choose = (chosen: string) => {
    setProject(chosen);
    change({ secret: '' });
  };
  const sample = tags.find((tag) => tag.name === source.tag)?.annotations ?? {};
  const valid = validName(source.name) && validURI(source.uri);
  const built = stream.status?.tags?.some((tag) => tag.tag === source.tag && tag.items && tag.items.length > 0);
  return (
    <CreateForm
      title={stream.metadata.annotations?.['openshift.io/display-name'] ?? stream.metadata.name}
      icon={<ItemIcon kind="builder" icon={{ name: sample.iconClass ?? '' }} tags={[]} />}
      origin={stream.metadata.namespace}
      description={sample.description ?? ''}
      project={project}
      setProject={choose}
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
      <NameField name={source.name} change={(name) => change({ name })} />
      <GitFields project={project} origin={source} sample={sample.sampleRepo} change={change} />
      <PortField port={source.port} change={(port) => change({ port })} />
      <Checkbox id="builder-route" label={text.catalog.route} isChecked={source.route} onChange={(_, route) => change({ route })} />
      {valid && project !== '' && <Command command={commandOf(source, project)} />}
    </CreateForm>
  );
}
