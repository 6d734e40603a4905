import { ClipboardCopy, Content, PageSection, Title } from '@patternfly/react-core';
import { text } from '../text/en';
import { tokenPage } from '../app/Toolbar';
import { useTitle } from '../ui/useTitle';

/** Component explains how to log in with the command line client. */
export function Component() {
  useTitle(text.commandLine.title);
  return (
    <PageSection>
      <Title headingLevel="h1">{text.commandLine.title}</Title>
      <Content>
        <p>{text.commandLine.body}</p>
        <p>
          <a href={tokenPage} target="_blank" rel="noreferrer">
            {text.commandLine.token}
          </a>
        </p>
        <p>{text.commandLine.tokenBody}</p>
        <p>{text.commandLine.login}</p>
      </Content>
      <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel={text.commandLine.title}>
        {`oc login ${location.origin}`}
      </ClipboardCopy>
    </PageSection>
  );
}
