import { Content, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, PageSection, Title } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { config } from '../api/config';
import { useUser } from '../api/hooks';
import { get } from '../api/http';
import { useStore } from '../api/store';
import { about as t } from '../text/about';
import { text } from '../text/en';
import { Outcome } from '../ui/Outcome';
import { useTitle } from '../ui/useTitle';

interface Version {
  gitVersion: string;
  gitCommit: string;
  buildDate: string;
}

/** known formats a version value. It replaces the placeholders in development builds. */
function known(value: string | undefined): string {
  return value === undefined ? '-' : value === '' || /\$Format|^1970-/.test(value) ? t.development : value;
}

/** Component shows the version, the cluster and the user. */
export function Component() {
  useTitle(t.title);
  const { data, error } = useQuery({ queryKey: ['version'], queryFn: () => get<Version>('/version') });
  const user = useUser();
  const facts: [term: string, value: string][] = [
    [t.version, known(data?.gitVersion)],
    [t.commit, known(data?.gitCommit)],
    [t.built, known(data?.buildDate)],
    [t.address, useStore(config).masterURL],
    [t.account, user?.metadata.name ?? '-'],
    [t.groups, user?.groups?.join(', ') || text.none],
  ];
  return (
    <PageSection>
      <Title headingLevel="h1">{t.title}</Title>
      <Content>
        <p>{t.body}</p>
      </Content>
      <Outcome error={error} />
      <DescriptionList isHorizontal isCompact>
        {facts.map(([term, value]) => (
          <DescriptionListGroup key={term}>
            <DescriptionListTerm>{term}</DescriptionListTerm>
            <DescriptionListDescription>{value}</DescriptionListDescription>
          </DescriptionListGroup>
        ))}
      </DescriptionList>
      <Content>
        <p>
          <Link to="/command-line">{text.masthead.commandLine}</Link>
        </p>
      </Content>
    </PageSection>
  );
}
