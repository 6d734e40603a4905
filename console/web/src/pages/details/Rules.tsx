import { access } from '../../text/access';
import { text } from '../../text/en';
import { DataTable } from '../../ui/DataTable';

const t = access.rules;

/** Rule is a rule of a role. It allows verbs on resources or on paths. */
export interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
}

/** Rules shows what a role allows. */
export default function Rules({ rules }: { rules: Rule[] }) {
  return (
    <DataTable
      label={t.title}
      items={rules.map((rule, index) => ({ ...rule, index }))}
      keyOf={({ index }) => String(index)}
      empty={text.none}
      columns={[
        { title: t.verbs, cell: ({ verbs }) => verbs.join(', ') },
        { title: t.resources, cell: ({ resources, nonResourceURLs }) => [...(resources ?? []), ...(nonResourceURLs ?? [])].join(', ') },
        { title: t.groups, cell: ({ apiGroups = [] }) => apiGroups.map((group) => group || t.core).join(', ') || '-' },
        { title: t.names, cell: ({ resourceNames = [] }) => resourceNames.join(', ') || t.all },
      ]}
    />
  );
}
