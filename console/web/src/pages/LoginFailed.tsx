import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from '@patternfly/react-core';
import { useSearchParams } from 'react-router';
import { own } from '../api/own';
import { loginPath } from '../api/session';
import { text } from '../text/en';

/** Component explains why a login failed. It shows only predefined messages. */
export function Component() {
  const [query] = useSearchParams();
  const code = query.get('error') ?? '';
  return (
    <main>
      <EmptyState headingLevel="h1" status="danger" titleText={text.connection.loginFailed}>
        <EmptyStateBody>{own(text.connection.loginErrors, code) ?? text.connection.loginErrors.access_denied}</EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button component="a" href={loginPath('/console/')}>
              {text.retry}
            </Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    </main>
  );
}
