import { Alert, Button } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { plainOperations, type Bean, type Jolokia } from '../../api/jolokia';
import { text } from '../../text/en';
import { Confirm } from '../../ui/Confirm';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';

const t = text.java;

/** format writes a value of a bean as text. */
function format(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 1);
}

/** BeanView shows the attributes of a bean, and runs its operations that need no arguments. */
export function BeanView({ agent, uid, bean }: { agent: Jolokia; uid: string; bean: Bean }) {
  const values = useQuery({ queryKey: ['bean', uid, bean.name], queryFn: () => agent.read(bean.name) });
  const [asked, setAsked] = useState<string>();
  const [result, setResult] = useState<{ operation: string; value: unknown }>();
  if (values.error) {
    return <Outcome error={values.error} />;
  }
  if (!values.data) {
    return <Loading />;
  }
  return (
    <>
      <Table aria-label={t.attributes} variant="compact">
        <Thead>
          <Tr>
            <Th>{t.attribute}</Th>
            <Th>{text.forms.value}</Th>
          </Tr>
        </Thead>
        <Tbody>
          {Object.entries(values.data).map(([name, value]) => (
            <Tr key={name}>
              <Td dataLabel={t.attribute}>{name}</Td>
              <Td dataLabel={text.forms.value} className="console-mono" modifier="breakWord">
                {format(value)}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      <Button variant="secondary" onClick={() => void values.refetch()}>
        {text.editor.reload}
      </Button>{' '}
      {plainOperations(bean).map((operation) => (
        <Button key={operation} variant="link" onClick={() => setAsked(operation)}>
          {t.run(operation)}
        </Button>
      ))}
      {result && (
        <Alert isInline component="h3" isLiveRegion variant="success" title={t.ran(result.operation)}>
          <pre className="console-message">{format(result.value)}</pre>
        </Alert>
      )}
      {asked && (
        <Confirm
          title={t.run(asked)}
          body={t.runBody(asked, bean.name)}
          action={t.confirm}
          run={() => agent.execute(bean.name, asked).then((value) => setResult({ operation: asked, value }))}
          close={() => setAsked(undefined)}
        />
      )}
    </>
  );
}
