import { PageSection, Title } from '@patternfly/react-core';
import { useEffect, useRef, useState } from 'react';
import { useParams } from 'react-router';
import { send } from '../api/http';
import { extensionPages, type ExtensionPage } from '../app/extensions';
import { Outcome } from '../ui/Outcome';
import { useTitle } from '../ui/useTitle';
import { Component as NotFound } from './NotFound';

/** Component shows a page that an administrator's script adds. */
export function Component() {
  const { project, page: path } = useParams();
  const page = extensionPages(project === undefined ? 'cluster' : 'project').find((candidate) => candidate.path === path);
  return page ? <Extension key={`${project} ${path}`} page={page} project={project} /> : <NotFound />;
}

function Extension({ page, project }: { page: ExtensionPage; project: string | undefined }) {
  useTitle(page.title, project);
  const element = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<Error>();
  useEffect(() => {
    const { current } = element;
    const leaving = new AbortController();
    const { signal } = leaving;
    const request = async (method: string, of: string, body?: unknown) => (await send(method, of, body, { signal })).json() as Promise<unknown>;
    const render = async () => current && page.render(current, { project, signal, request });
    render().catch((cause: unknown) => signal.aborted || setError(cause instanceof Error ? cause : new Error(String(cause))));
    return () => {
      leaving.abort();
      current?.replaceChildren();
    };
  }, [page, project]);
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{page.title}</Title>
        <Outcome error={error} />
      </PageSection>
      <PageSection isFilled>
        <div ref={element} />
      </PageSection>
    </>
  );
}
