import { EmptyState, EmptyStateBody } from '@patternfly/react-core';
import { text } from '../text/en';
import { useTitle } from '../ui/useTitle';

/** Component is the page for unknown addresses. */
export function Component() {
  useTitle(text.failure.notFound);
  return (
    <EmptyState headingLevel="h1" status="warning" titleText={text.failure.notFound}>
      <EmptyStateBody>{text.failure.notFoundBody}</EmptyStateBody>
    </EmptyState>
  );
}
