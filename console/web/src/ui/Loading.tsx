import { Bullseye, Spinner } from '@patternfly/react-core';
import { text } from '../text/en';

/** Loading stands where something will be shown. */
export function Loading() {
  return (
    <Bullseye>
      <Spinner aria-label={text.loading} />
    </Bullseye>
  );
}
