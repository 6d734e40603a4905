import { ActionGroup, Alert, Button, Content, Form, List, ListItem, PageSection, Title } from '@patternfly/react-core';
import { lazy, Suspense, useState } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import { apply, type Applied } from '../api/apply';
import { apiVersion } from '../api/discovery';
import { useResources } from '../api/hooks';
import { problemsOf, type Problem } from '../api/schema/problems';
import { parseObjects } from '../api/yaml';
import { persistent } from '../app/load';
import { text } from '../text/en';
import { Copyable } from '../ui/Copyable';
import { Loading } from '../ui/Loading';
import { Outcome } from '../ui/Outcome';
import { Problems } from '../ui/Problems';
import { useRequest } from '../ui/useRequest';
import { useTitle } from '../ui/useTitle';
import { linkTo } from '../app/links';

const Differences = lazy(persistent(() => import('../ui/Differences')));
const Editor = lazy(persistent(() => import('../ui/Editor')));

/** Component creates the objects in a text that the user enters, in a project or in the cluster. */
export function Component() {
  const { project } = useParams();
  const [query] = useSearchParams();
  const resources = useResources();
  const template = resources?.get(query.get('kind') ?? '');
  useTitle(text.import.title, project);
  if (!resources) {
    return <Loading />;
  }
  const start = template ? `apiVersion: ${apiVersion(template)}\nkind: ${template.kind}\nmetadata:\n  name: example\n` : '';
  return <ImportForm key={start} project={project} start={start} />;
}

function ImportForm({ project, start }: { project: string | undefined; start: string }) {
  const resources = useResources();
  const [source, setSource] = useState(start);
  const { isBusy, error, send } = useRequest();
  const [checked, setChecked] = useState<Applied[]>();
  const [applied, setApplied] = useState<Applied[]>();
  const [found, setFound] = useState<{ problems: Problem[]; dryRun: boolean }>();
  const [cursor, setCursor] = useState<{ at: number }>();
  const run = (dryRun: boolean, problemsAllowed = false) => {
    setApplied(undefined);
    setChecked(undefined);
    send(async () => {
      const problems = problemsAllowed ? [] : await problemsOf(source);
      setFound({ problems, dryRun });
      if (problems.length === 0) {
        const done = await apply(parseObjects(source), project, resources ?? new Map(), dryRun);
        (dryRun ? setChecked : setApplied)(done);
      }
    });
  };
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.import.title}</Title>
        <Content>
          <p>{text.import.body}</p>
        </Content>
      </PageSection>
      <PageSection isFilled>
        <Form
          onSubmit={(event) => {
            event.preventDefault();
            run(false);
          }}
        >
          <Suspense fallback={<Loading />}>
            <Editor label={text.editor.label} value={source} cursor={cursor} onChange={setSource} />
          </Suspense>
          {found && <Problems problems={found.problems} show={({ from }) => setCursor({ at: from })} proceed={() => run(found.dryRun, true)} />}
          <Outcome error={error} />
          {checked && (
            <>
              <Alert isInline component="h2" variant="success" isLiveRegion title={text.editor.checked} />
              <Suspense fallback={<Loading />}>
                <Differences applied={checked} />
              </Suspense>
            </>
          )}
          {applied && (
            <Alert isInline component="h2" variant="success" isLiveRegion title={text.import.created(applied.length)}>
              <List isPlain>
                {applied.map(({ object, resource, outcome }) => (
                  <ListItem key={object.metadata.uid}>
                    <Link to={linkTo(resource, object.metadata.namespace, object.metadata.name)}>
                      {resource.kind} {object.metadata.name}
                    </Link>{' '}
                    {outcome}
                  </ListItem>
                ))}
              </List>
            </Alert>
          )}
          <ActionGroup>
            <Button type="submit" isDisabled={isBusy || source.trim() === ''} isLoading={isBusy}>
              {text.import.run}
            </Button>
            <Button variant="secondary" isDisabled={isBusy || source.trim() === ''} onClick={() => run(true)}>
              {text.editor.check}
            </Button>
          </ActionGroup>
        </Form>
        <Content>
          <p>{text.import.command}</p>
        </Content>
        <Copyable label={text.import.command}>
          {project === undefined ? 'oc apply -f FILE' : `oc apply -n ${project} -f FILE`}
        </Copyable>
      </PageSection>
    </>
  );
}
