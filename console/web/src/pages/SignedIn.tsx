import { EmptyState } from '@patternfly/react-core';
import { useEffect } from 'react';
import { tell } from '../api/session';
import { text } from '../text/en';

/** Component notifies the other windows of the new session, and closes its own window. */
export function Component() {
  useEffect(() => {
    tell('signed in');
    window.close();
  }, []);
  return (
    <main>
      <EmptyState headingLevel="h1" status="success" titleText={text.connection.signedIn} />
    </main>
  );
}
