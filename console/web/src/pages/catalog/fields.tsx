import { FormGroup, NumberInput, TextInput } from '@patternfly/react-core';
import { validName } from '../../api/projects';
import { validURI, type Origin } from '../../api/source';
import { text } from '../../text/en';
import { Copyable } from '../../ui/Copyable';
import { Field } from '../../ui/Field';
import { SecretField } from './SecretField';

const t = text.catalog;
const maxPort = 65535;

/** NameField is the field for an application's name. */
export function NameField({ name, change }: { name: string; change: (name: string) => void }) {
  const invalid = name !== '' && !validName(name) ? text.projects.nameInvalid : undefined;
  return (
    <Field id="builder-name" label={t.applicationName} required invalid={invalid} help={t.nameHelp}>
      <TextInput id="builder-name" value={name} validated={invalid ? 'error' : 'default'} aria-describedby="builder-name-help" onChange={(_, value) => change(value)} />
    </Field>
  );
}

/** GitFields contains the fields for the source's location. */
export function GitFields({ project, origin, sample, change }: { project: string; origin: Origin; sample?: string; change: (part: Partial<Origin>) => void }) {
  const invalid = origin.uri !== '' && !validURI(origin.uri) ? t.uriInvalid : undefined;
  return (
    <>
      <Field id="builder-uri" label={t.repository} required invalid={invalid} help={sample ? t.sample(sample) : undefined}>
        <TextInput id="builder-uri" value={origin.uri} validated={invalid ? 'error' : 'default'} aria-describedby="builder-uri-help" onChange={(_, uri) => change({ uri: uri.trim() })} />
      </Field>
      <Field id="builder-ref" label={t.reference} help={t.referenceHelp}>
        <TextInput id="builder-ref" value={origin.ref} onChange={(_, ref) => change({ ref: ref.trim() })} />
      </Field>
      <Field id="builder-dir" label={t.contextDir} help={t.contextDirHelp}>
        <TextInput id="builder-dir" value={origin.contextDir} onChange={(_, contextDir) => change({ contextDir: contextDir.trim() })} />
      </Field>
      <SecretField project={project} secret={origin.secret} change={(secret) => change({ secret })} />
    </>
  );
}

/** PortField is the field for the port on which an application listens. */
export function PortField({ port, change }: { port: number; change: (port: number) => void }) {
  return (
    <FormGroup label={t.port} fieldId="builder-port">
      <NumberInput
        inputProps={{ id: 'builder-port' }}
        inputAriaLabel={t.port}
        minusBtnAriaLabel="-1"
        plusBtnAriaLabel="+1"
        min={1}
        max={maxPort}
        value={port}
        onMinus={() => change(port - 1)}
        onPlus={() => change(port + 1)}
        onChange={(event) => change(Math.min(maxPort, Math.max(1, Number((event.target as HTMLInputElement).value) || 1)))}
      />
    </FormGroup>
  );
}

/** Command shows the oc command that has the same effect as a form, with a note. */
export function Command({ command, note }: { command: string; note?: string }) {
  return (
    <FormGroup label={text.import.command}>
      <Copyable label={text.import.command} isCode={command.includes('\n')}>
        {command}
      </Copyable>
      {note !== undefined && <p>{note}</p>}
    </FormGroup>
  );
}
