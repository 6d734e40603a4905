import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from '@patternfly/react-core';
import { loginPath } from '../api/session';
import { text } from '../text/en';

/** Component confirms a logout. */
export function Component() {
  return (
    <main>
      <EmptyState headingLevel="h1" titleText={text.connection.loggedOut}>
        <EmptyStateBody>{text.connection.loggedOutBody}</EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button component="a" href={loginPath('/console/')}>
              {text.connection.logIn}
            </Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    </main>
  );
}
