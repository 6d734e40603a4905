import { Alert, Button, Checkbox, FormGroup, InputGroup, InputGroupItem, TextInput } from '@patternfly/react-core';
import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { commandOf, findImage, imageObjects, nameOf, validImage, type Found } from '../../api/deploy';
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

const t = images.deploy;

/** Result is the image's description from its registry. */
interface Result {
  image: string;
  found?: Found;
  error?: Error;
}

/** Component creates an application from an image. */
export function Component() {
  useTitle(text.catalog.image, text.catalog.title);
  const [query] = useSearchParams();
  const [project, setProject] = useState(query.get('project') ?? '');
  const [image, setImage] = useState(query.get('image') ?? '');
  const [name, setName] = useState<string>();
  const [env, setEnv] = useState<[string, string][]>([]);
  const [route, setRoute] = useState(true);
  const [result, setResult] = useState<Result>();
  const { isBusy, send } = useRequest();
  const invalid = image !== '' && !validImage(image) ? t.imageInvalid : undefined;
  const known = result?.image === image ? result : undefined;
  const deployed = { name: name ?? nameOf(image), image, found: known?.found, env, route };
  const envIsValid = isValid(env.map(([key, value]) => ({ name: key, value })));
  const mayFind = project !== '' && validImage(image) && !isBusy;
  const valid = known !== undefined && validName(deployed.name) && envIsValid;
  const find = () =>
    send(() =>
      findImage(project, image).then(
        (found) => setResult({ image, found }),
        (error: Error) => setResult({ image, error }),
      ),
    );
  return (
    <CreateForm title={text.catalog.image} description={t.body} project={project} setProject={setProject} valid={valid} objects={() => Promise.resolve({ objects: imageObjects(deployed) })}>
      <Field id="image-name" label={t.image} required invalid={invalid} help={t.imageHelp}>
        <InputGroup>
          <InputGroupItem isFill>
            <TextInput id="image-name" value={image} autoComplete="off" validated={invalid ? 'error' : 'default'} aria-describedby="image-name-help" onChange={(_, value) => setImage(value.trim())} />
          </InputGroupItem>
          <InputGroupItem>
            <Button variant="control" isDisabled={!mayFind} isLoading={isBusy} onClick={find}>
              {t.find}
            </Button>
          </InputGroupItem>
        </InputGroup>
      </Field>
      {known?.error && <Alert isInline isLiveRegion component="h2" variant="warning" title={t.notFound(known.error.message)} />}
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

function FoundImage({ found: { ports, user } }: { found: Found }) {
  const list = ports.map(({ port, protocol }) => `${port}/${protocol}`).join(', ');
  return (
    <Alert isInline isLiveRegion component="h2" variant="success" title={list === '' ? t.noPorts : t.found(list)}>
      {['', '0', 'root'].includes(user.split(':')[0] ?? '') && t.root}
    </Alert>
  );
}
