import { Content, PageSection, Stack, Title } from '@patternfly/react-core';
import type { ReactNode } from 'react';
import { useTitle } from './useTitle';

interface StackPageProps {
  title: string;
  project?: string;
  body?: ReactNode;
  children: ReactNode;
}

/** StackPage is a page with a title, an introduction, and parts that are stacked vertically. */
export function StackPage({ title, project, body, children }: StackPageProps) {
  useTitle(title, project);
  return (
    <>
      <PageSection>
        <Title headingLevel="h1">{title}</Title>
        {body && (
          <Content>
            <p>{body}</p>
          </Content>
        )}
      </PageSection>
      <PageSection isFilled>
        <Stack hasGutter>{children}</Stack>
      </PageSection>
    </>
  );
}
