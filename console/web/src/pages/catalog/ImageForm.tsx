import { Alert, Button, Checkbox, FormGroup, FormSelect, FormSelectOption, InputGroup, InputGroupItem, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { sharedNamespace } from '../../api/catalog';
import { commandOf, findImage, findTag, imageObjects, nameOf, validImage, type Found, type StreamTag } from '../../api/deploy';
import { own } from '../../api/own';
import { validName } from '../../api/projects';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Field } from '../../ui/Field';
import { useRequest } from '../../ui/useRequest';
import { useTitle } from '../../ui/useTitle';
import { isValid } from '../details/environment';
import { Pairs } from '../forms/Pairs';
import { CreateForm } from './CreateForm';
import { Command, NameField } from './fields';
import { StreamTagField } from './StreamTagField';

const t = images.deploy;

/** Result is the image's description from its registry or its image stream. */
interface Result {
  found?: Found;
  error?: Error;
}

/**
 * keyOf returns the key of a result. The key includes the kind of source, because a registry and an
 * image stream can use the same name.
 */
const keyOf = (image: string, tag?: StreamTag) => `${tag ? 'stream' : 'registry'}:${image}`;

/** Component creates an application from an image in a registry or in an image stream. */
export function Component() {
  useTitle(text.catalog.image, text.catalog.title);
  const [query] = useSearchParams();
  const [project, setProject] = useState(query.get('project') ?? '');
  const [reference, setReference] = useState(query.get('image') ?? '');
  const [tag, setTag] = useState<StreamTag>();
  const [name, setName] = useState<string>();
  const [env, setEnv] = useState<[string, string][]>([]);
  const [route, setRoute] = useState(true);
  const [results, setResults] = useState<Record<string, Result>>({});
  const { isBusy, send } = useRequest();
  const image = tag ? `${tag.namespace}/${tag.name}` : reference;
  const known = own(results, keyOf(image, tag));
  const deployed = { name: name ?? nameOf(tag?.name ?? reference), image, tag, found: known?.found, env, route };
  const envIsValid = isValid(env.map(([key, value]) => ({ name: key, value })));
  const valid = known !== undefined && validName(deployed.name) && envIsValid;
  const find = (of: string, request: Promise<Found>) =>
    send(() =>
      request.then(
        (found) => setResults((all) => ({ ...all, [of]: { found } })),
        (error: Error) => setResults((all) => ({ ...all, [of]: { error } })),
      ),
    );
  const choose = (chosen: StreamTag) => {
    setTag(chosen);
    if (chosen.name !== '') {
      find(keyOf(`${chosen.namespace}/${chosen.name}`, chosen), findTag(chosen));
    }
  };
  return (
    <CreateForm title={text.catalog.image} origin={tag?.namespace} description={t.body} project={project} setProject={setProject} valid={valid} objects={() => Promise.resolve({ objects: imageObjects(deployed) })}>
      <FormGroup label={t.from} fieldId="image-from">
        <FormSelect id="image-from" value={tag ? 'stream' : 'registry'} onChange={(_, from) => setTag(from === 'stream' ? { namespace: project || sharedNamespace, name: '' } : undefined)}>
          {Object.entries(t.froms).map(([value, label]) => (
            <FormSelectOption key={value} value={value} label={label} />
          ))}
        </FormSelect>
      </FormGroup>
      {tag ? (
        <StreamTagField project={project} tag={tag} change={choose} />
      ) : (
        <ReferenceField reference={reference} change={setReference} isBusy={isBusy} find={project === '' ? undefined : () => find(keyOf(reference), findImage(project, reference))} />
      )}
      {known?.error && <Alert isInline isLiveRegion component="h2" variant="warning" title={tag ? t.unreadable(known.error.message) : t.notFound(known.error.message)} />}
      {known?.found && <FoundImage found={known.found} />}
      <NameField name={deployed.name} change={setName} />
      <FormGroup label={t.env} role="group">
        <Pairs label={t.env} pairs={env} change={setEnv} />
      </FormGroup>
      {!envIsValid && <Alert isInline isLiveRegion component="h2" variant="warning" title={t.envInvalid} />}
      <Checkbox id="image-route" label={text.catalog.route} isChecked={route} onChange={(_, checked) => setRoute(checked)} />
      {valid && project !== '' && <Command command={commandOf(deployed, project)} />}
    </CreateForm>
  );
}

interface ReferenceFieldProps {
  reference: string;
  change: (reference: string) => void;
  isBusy: boolean;
  /** find reads the image. It is undefined if the user has not chosen a project. */
  find?: () => void;
}

/** ReferenceField is the field for an image in a registry. */
function ReferenceField({ reference, change, isBusy, find }: ReferenceFieldProps) {
  const invalid = reference !== '' && !validImage(reference) ? t.imageInvalid : undefined;
  return (
    <Field id="image-name" label={t.image} required invalid={invalid} help={t.imageHelp}>
      <InputGroup>
        <InputGroupItem isFill>
          <TextInput id="image-name" value={reference} autoComplete="off" validated={invalid ? 'error' : 'default'} aria-describedby="image-name-help" onChange={(_, value) => change(value.trim())} />
        </InputGroupItem>
        <InputGroupItem>
          <Button variant="control" isDisabled={!find || !validImage(reference) || isBusy} isLoading={isBusy} onClick={find}>
            {t.find}
          </Button>
        </InputGroupItem>
      </InputGroup>
    </Field>
  );
}

function FoundImage({ found: { ports, user } }: { found: Found }) {
  const list = ports.map(({ port, protocol }) => `${port}/${protocol}`).join(', ');
  return (
    <Alert isInline isLiveRegion component="h2" variant="success" title={list === '' ? t.noPorts : t.found(list)}>
      {['', '0', 'root'].includes(user.split(':')[0] ?? '') && t.root}
    </Alert>
  );
}
