import { ActionGroup, Alert, Button, Form, PageSection, Title } from '@patternfly/react-core';
import { useState, type FormEvent } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { findBuilders, type ImageStream } from '../../api/catalog';
import { detect, detectable, originOf, type Detected, type Origin } from '../../api/source';
import { text } from '../../text/en';
import { images } from '../../text/images';
import { Outcome } from '../../ui/Outcome';
import { useRequest } from '../../ui/useRequest';
import { useTitle } from '../../ui/useTitle';
import { GitFields } from './fields';
import { ProjectField } from './ProjectField';

const t = images.git;

/** Result describes a repository's content, with the suitable builder images. */
interface Result extends Detected {
  builders: ImageStream[];
}

/** Component determines how to build the source in a Git repository. */
export function Component() {
  useTitle(text.catalog.git, text.catalog.title);
  const [query] = useSearchParams();
  const navigate = useNavigate();
  const [project, setProject] = useState(query.get('project') ?? '');
  const [origin, setOrigin] = useState(() => originOf(undefined));
  const [result, setResult] = useState<Result>();
  const { isBusy, error, send } = useRequest();
  const choose = (name: string) => {
    setProject(name);
    setOrigin({ ...origin, secret: '' });
    setResult(undefined);
  };
  const isReady = project !== '' && detectable(origin.uri) && !isBusy;
  const find = (event: FormEvent) => {
    event.preventDefault();
    if (!isReady) {
      return;
    }
    setResult(undefined);
    send(async () => {
      const detected = await detect(project, origin);
      setResult({ ...detected, builders: detected.language === '' ? [] : await findBuilders(project, detected.language) });
    });
  };
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{text.catalog.git}</Title>
        <p>{t.body}</p>
      </PageSection>
      <PageSection isFilled>
        <Form isWidthLimited onSubmit={find}>
          <ProjectField project={project} setProject={choose} />
          <GitFields
            project={project}
            origin={origin}
            change={(part) => {
              setOrigin({ ...origin, ...part });
              setResult(undefined);
            }}
          />
          <Outcome error={error} />
          {origin.uri !== '' && !detectable(origin.uri) && <Alert isInline isLiveRegion component="h2" variant="info" title={t.unreadable} />}
          {result && <Choices result={result} project={project} origin={origin} />}
          <ActionGroup>
            <Button type="submit" isLoading={isBusy} isDisabled={!isReady}>
              {t.find}
            </Button>
            <Button variant="link" onClick={() => void navigate(project === '' ? '/catalog' : `/project/${project}/catalog`)}>
              {t.catalog}
            </Button>
          </ActionGroup>
        </Form>
      </PageSection>
    </>
  );
}

/**
 * Choices offers the forms for building the source. The forms receive the repository from this
 * page, never from an address.
 */
function Choices({ result: { language, dockerfile, builders }, project, origin }: { result: Result; project: string; origin: Origin }) {
  const of = `?${new URLSearchParams({ project })}`;
  const found = [dockerfile ? t.dockerfile : '', language === '' ? '' : t.language(language), language !== '' && builders.length === 0 ? t.noBuilder : ''].filter(Boolean).join(' ');
  return (
    <Alert
      isInline
      isLiveRegion
      component="h2"
      variant={dockerfile || builders.length > 0 ? 'success' : 'info'}
      title={found || t.nothing}
      actionLinks={
        <>
          {dockerfile && (
            <Link to={`/catalog/dockerfile${of}`} state={origin}>
              {t.buildDockerfile}
            </Link>
          )}
          {builders.map(({ metadata: { name, namespace, annotations, uid } }) => (
            <Link key={uid} to={`/catalog/builder/${namespace}/${name}${of}`} state={origin}>
              {t.buildWith(annotations?.['openshift.io/display-name'] ?? name)}
            </Link>
          ))}
        </>
      }
    />
  );
}
