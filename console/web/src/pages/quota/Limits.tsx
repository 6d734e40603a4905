import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { limits, type LimitRange } from '../../api/quota';
import { text } from '../../text/en';

/** Limits shows the limits in a LimitRange. */
export default function Limits({ range }: { range: LimitRange }) {
  const rows = (range.spec?.limits ?? []).flatMap((item) => {
    const names = new Set(limits.flatMap((limit) => Object.keys(item[limit] ?? {})));
    return [...names].sort().map((resource) => ({ item, resource }));
  });
  return (
    <Table aria-label={text.quota.limits(range.metadata.name)} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.details.type}</Th>
          <Th>{text.sections.resource}</Th>
          {limits.map((limit) => (
            <Th key={limit} modifier="wrap">{text.quota.columns[limit]}</Th>
          ))}
        </Tr>
      </Thead>
      <Tbody>
        {rows.map(({ item, resource }) => (
          <Tr key={`${item.type} ${resource}`}>
            <Td dataLabel={text.details.type}>{item.type}</Td>
            <Td dataLabel={text.sections.resource}>{resource}</Td>
            {limits.map((limit) => (
              <Td key={limit} dataLabel={text.quota.columns[limit]}>
                {item[limit]?.[resource] ?? '-'}
              </Td>
            ))}
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
