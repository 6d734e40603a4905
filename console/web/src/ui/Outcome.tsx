import { Alert } from '@patternfly/react-core';
import type { RequestState } from './useRequest';

/** Outcome explains why a request failed or, if done is set, shows that the request succeeded. */
export function Outcome({ error, isDone, done }: Partial<Pick<RequestState, 'isDone'>> & { error?: Error | null; done?: string }) {
  if (error) {
    return <Alert isInline isLiveRegion component="h2" variant="danger" title={error.message} />;
  }
  return isDone && done && <Alert isInline isLiveRegion component="h2" variant="success" title={done} />;
}
