import { ActionGroup, Alert, Button, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, List, ListItem, PageSection, Title } from '@patternfly/react-core';
import { useState, type FormEvent, type ReactNode } from 'react';
import { Link } from 'react-router';
import { createAll, type Applied } from '../../api/apply';
import { useResources } from '../../api/hooks';
import type { KubeObject } from '../../api/types';
import { text } from '../../text/en';
import { linkTo } from '../../app/links';
import { ProjectField } from './ProjectField';

interface CreateFormProps {
  title: string;
  description: string;
  project: string;
  setProject: (name: string) => void;
  valid: boolean;
  /** objects returns what the form creates, with a message for the person. */
  objects: () => Promise<{ objects: KubeObject[]; message?: string }>;
  children: ReactNode;
}

/** CreateForm creates objects in a project: all of them, or none if the server refuses one. */
export function CreateForm({ title, description, project, setProject, valid, objects, children }: CreateFormProps) {
  const resources = useResources();
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  const [result, setResult] = useState<{ applied: Applied[]; message?: string }>();
  const ready = valid && project !== '' && resources !== undefined;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!ready) {
      return;
    }
    setBusy(true);
    setError(undefined);
    try {
      const wanted = await objects();
      setResult({ applied: await createAll(wanted.objects, project, resources), message: wanted.message });
    } catch (cause) {
      setError(cause as Error);
    }
    setBusy(false);
  };
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{title}</Title>
        <p>{description}</p>
      </PageSection>
      <PageSection isFilled aria-label={title}>
        {result ? (
          <Result project={project} applied={result.applied} message={result.message} />
        ) : (
          <Form isWidthLimited onSubmit={(event) => void submit(event)}>
            <ProjectField project={project} setProject={setProject} />
            {children}
            {error && <Alert isInline variant="danger" isLiveRegion title={error.message} />}
            <ActionGroup>
              <Button type="submit" isLoading={busy} isDisabled={busy || !ready}>
                {text.create}
              </Button>
            </ActionGroup>
          </Form>
        )}
      </PageSection>
    </>
  );
}

function Result({ project, applied, message }: { project: string; applied: Applied[]; message?: string }) {
  return (
    <Alert isInline variant="success" isLiveRegion title={text.catalog.created} actionLinks={<Link to={`/project/${project}/overview`}>{text.catalog.continue}</Link>}>
      {message && <pre className="console-message">{message}</pre>}
      <List isPlain>
        {applied.map(({ object, resource }) => (
          <ListItem key={object.metadata.uid}>
            <Link to={linkTo(resource, object.metadata.namespace, object.metadata.name)}>
              {resource.kind} {object.metadata.name}
            </Link>
          </ListItem>
        ))}
      </List>
    </Alert>
  );
}

interface FieldProps {
  id: string;
  label: string;
  help?: string;
  required?: boolean;
  invalid?: string;
  children: ReactNode;
}

/** Field is a field of the form with its help, or with what is wrong. */
export function Field({ id, label, help, required, invalid, children }: FieldProps) {
  return (
    <FormGroup label={label} fieldId={id} isRequired={required}>
      {children}
      {(invalid ?? help) && (
        <FormHelperText>
          <HelperText id={`${id}-help`}>
            <HelperTextItem variant={invalid ? 'error' : 'default'}>{invalid ?? help}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      )}
    </FormGroup>
  );
}
