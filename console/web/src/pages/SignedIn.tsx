import { EmptyState } from '@patternfly/react-core';
import { useEffect } from 'react';
import { tell } from '../api/session';
import { text } from '../text/en';

/** Component tells the other windows that the session is new, and closes itself. */
export function Component() {
  useEffect(() => {
    tell('signed in');
    window.close();
  }, []);
  return <EmptyState headingLevel="h1" status="success" titleText={text.connection.signedIn} />;
}
