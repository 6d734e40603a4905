import { Bullseye, Spinner } from '@patternfly/react-core';
import { text } from '../text/en';

/** Loading is a placeholder for content that is being loaded. */
export function Loading() {
  return (
    <Bullseye>
      <Spinner aria-label={text.loading} />
    </Bullseye>
  );
}
