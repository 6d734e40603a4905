import { Content, List, ListItem, PageSection, Title } from '@patternfly/react-core';
import { config } from '../api/config';
import { bytes } from '../api/image';
import { useStore } from '../api/store';
import { constant } from '../app/constants';
import { clientLinks } from '../app/extensions';
import { tokenPage } from '../app/Toolbar';
import { text } from '../text/en';
import { Copyable } from '../ui/Copyable';
import { useTitle } from '../ui/useTitle';

const t = text.commandLine;

/** Component offers the command line client for download, and explains how to log in with it. */
export function Component() {
  useTitle(t.title);
  const { masterURL, downloads } = useStore(config);
  const links = clientLinks();
  const offered = downloads ?? [];
  return (
    <PageSection>
      <Title headingLevel="h1">{t.title}</Title>
      <Content>
        <p>{t.body}</p>
      </Content>
      <Title headingLevel="h2">{t.downloads}</Title>
      {offered.length + links.length === 0 ? (
        <p>{t.none}</p>
      ) : (
        <List aria-label={t.downloads}>
          {offered.map(({ path, system, architecture, bytes: size }) => (
            <ListItem key={path}>
              <a href={path} download>
                {t.client(t.systems[system] ?? system, architecture)}
              </a>{' '}
              ({bytes(size)})
            </ListItem>
          ))}
          {links.map(([name, address]) => (
            <ListItem key={name}>
              <a href={address} target="_blank" rel="noreferrer">
                {name}
              </a>
            </ListItem>
          ))}
        </List>
      )}
      <Title headingLevel="h2">{t.logIn}</Title>
      <Content>
        {constant('DISABLE_COPY_LOGIN_COMMAND') !== true && (
          <>
            <p>
              <a href={tokenPage} target="_blank" rel="noreferrer">
                {t.token}
              </a>
            </p>
            <p>{t.tokenBody}</p>
          </>
        )}
        <p>{t.login}</p>
      </Content>
      <Copyable label={t.title}>
        {`oc login ${masterURL}`}
      </Copyable>
    </PageSection>
  );
}
