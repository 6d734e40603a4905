import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { text } from '../text/en';

/** ContainerSelect selects a pod's container. */
export function ContainerSelect({ containers, value, onChange }: { containers: string[]; value: string | undefined; onChange: (name: string) => void }) {
  return (
    <FormSelect aria-label={text.pod.container} value={value} onChange={(_, name) => onChange(name)}>
      {containers.map((name) => (
        <FormSelectOption key={name} value={name} label={name} />
      ))}
    </FormSelect>
  );
}
