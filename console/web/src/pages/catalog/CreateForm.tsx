import { ActionGroup, Alert, Button, Form, List, ListItem, PageSection, Title } from '@patternfly/react-core';
import { useState, type FormEvent, type ReactNode } from 'react';
import { Link } from 'react-router';
import { createAll, type Applied } from '../../api/apply';
import { sharedNamespace } from '../../api/catalog';
import { useResources } from '../../api/hooks';
import { riskyObjects, type RiskyObject } from '../../api/risk';
import type { KubeObject } from '../../api/types';
import { isUnchecked } from '../../app/constants';
import { text } from '../../text/en';
import { linkTo } from '../../app/links';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import { ProjectField } from './ProjectField';

/** Wanted contains the objects that a form creates, and a message for the user. */
interface Wanted {
  objects: KubeObject[];
  message?: string;
}

interface CreateFormProps {
  title: string;
  icon?: ReactNode;
  /**
   * origin is the project of the template or the image stream. The project's members can change the
   * template or the image stream.
   */
  origin?: string;
  description: string;
  project: string;
  setProject: (name: string) => void;
  valid: boolean;
  objects: () => Promise<Wanted>;
  children: ReactNode;
}

/**
 * CreateForm creates objects in a project. If the server rejects one object, it creates none. It
 * requires confirmation before it creates objects that grant permissions or are outside the
 * project. The reason is that a link can open the form for another user's template.
 */
export function CreateForm({ title, icon, origin, description, project, setProject, valid, objects, children }: CreateFormProps) {
  const resources = useResources();
  const { isBusy, error, send, reset } = useRequest();
  const [result, setResult] = useState<{ applied: Applied[]; message?: string }>();
  const [review, setReview] = useState<{ wanted: Wanted; risks: RiskyObject[] }>();
  const ready = valid && project !== '' && resources !== undefined;
  const run = (action: () => Promise<void>) => {
    setReview(undefined);
    send(action);
  };
  const create = async (wanted: Wanted) => {
    if (resources) {
      setResult({ applied: await createAll(wanted.objects, project, resources), message: wanted.message });
    }
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!ready) {
      return;
    }
    run(async () => {
      const wanted = await objects();
      const risks = riskyObjects(wanted.objects, project, resources, isUnchecked);
      if (risks.length > 0) {
        setReview({ wanted, risks });
        return;
      }
      await create(wanted);
    });
  };
  const change = () => {
    setReview(undefined);
    if (error) {
      reset();
    }
  };
  return (
    <>
      <PageSection>
        <div className="console-titled">
          {icon}
          <Title headingLevel="h1">{title}</Title>
        </div>
        <p>{description}</p>
      </PageSection>
      <PageSection isFilled aria-label={title}>
        {result ? (
          <Result project={project} applied={result.applied} message={result.message} />
        ) : (
          <Form isWidthLimited onSubmit={submit} onChange={change}>
            {origin !== undefined && origin !== sharedNamespace && origin !== project && <Alert isInline variant="warning" component="h2" title={text.catalog.foreign(origin)} />}
            <ProjectField project={project} setProject={setProject} />
            {children}
            <Outcome error={error} />
            {review && <Review risks={review.risks} create={() => run(() => create(review.wanted))} cancel={() => setReview(undefined)} />}
            <ActionGroup>
              <Button type="submit" isLoading={isBusy} isDisabled={isBusy || !ready}>
                {text.create}
              </Button>
            </ActionGroup>
          </Form>
        )}
      </PageSection>
    </>
  );
}

function Review({ risks, create, cancel }: { risks: RiskyObject[]; create: () => void; cancel: () => void }) {
  return (
    <Alert
      isInline
      isLiveRegion
      variant="warning"
      component="h2"
      title={text.catalog.risky}
      actionLinks={
        <>
          <Button variant="danger" onClick={create}>
            {text.catalog.createAnyway}
          </Button>
          <Button variant="link" onClick={cancel}>
            {text.cancel}
          </Button>
        </>
      }
    >
      <List>
        {risks.map(({ object, risk }, index) => (
          <ListItem key={index}>{text.catalog.risks[risk](`${object.kind} ${object.metadata.name}`, object.metadata.namespace ?? '')}</ListItem>
        ))}
      </List>
    </Alert>
  );
}

function Result({ project, applied, message }: { project: string; applied: Applied[]; message?: string }) {
  return (
    <Alert isInline component="h2" variant="success" isLiveRegion title={text.catalog.created} actionLinks={<Button component={(props) => <Link {...props} to={`/project/${project}/overview`} />}>{text.catalog.continue}</Button>}>
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
