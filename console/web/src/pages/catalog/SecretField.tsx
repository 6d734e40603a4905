import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useRights } from '../../api/hooks';
import { sourceSecrets } from '../../api/source';
import { images } from '../../text/images';
import { Field } from '../../ui/Field';

const t = images.git;

/** SecretField selects a project's secret for a private repository. */
export function SecretField({ project, secret, change }: { project: string; secret: string; change: (secret: string) => void }) {
  const mayList = useRights(project || undefined).may('list', '', 'secrets');
  const names = useQuery({ queryKey: ['source-secrets', project], queryFn: () => sourceSecrets(project), enabled: project !== '' && mayList, staleTime: 0 }).data ?? [];
  return (
    <Field id="builder-secret" label={t.secret} help={t.secretHelp}>
      <FormSelect id="builder-secret" value={secret} aria-describedby="builder-secret-help" onChange={(_, name) => change(name)}>
        <FormSelectOption value="" label={t.noSecret} />
        {[...new Set([...names, secret].filter(Boolean))].map((name) => (
          <FormSelectOption key={name} value={name} label={name} />
        ))}
      </FormSelect>
    </Field>
  );
}
