import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from '@patternfly/react-core';
import { useParams, useRouteError } from 'react-router';
import { ApiError } from '../api/http';
import { text } from '../text/en';

/**
 * Failure explains why content cannot be displayed. If a permission is missing, it lists users who
 * can grant it.
 */
export function Failure({ error, project, retry }: { error: Error; project?: string; retry?: () => void }) {
  const forbidden = error instanceof ApiError && error.status === 403;
  const missing = error instanceof ApiError && error.status === 404;
  return (
    <EmptyState
      headingLevel="h1"
      status={forbidden || missing ? 'warning' : 'danger'}
      titleText={forbidden ? text.failure.forbidden : missing ? text.failure.notFound : text.failure.title}
    >
      <EmptyStateBody>
        <p>{error.message}</p>
        {forbidden && <p>{project ? text.failure.whoCan(project) : text.failure.whoCanCluster}</p>}
      </EmptyStateBody>
      {!forbidden && !missing && (
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button onClick={retry ?? (() => location.reload())}>{text.retry}</Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      )}
    </EmptyState>
  );
}

/** RouteFailure shows a page's error. */
export function RouteFailure() {
  const error = useRouteError();
  const { project } = useParams();
  return <Failure error={error instanceof Error ? error : new Error(String(error))} project={project} />;
}
