import { Alert, Button } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { operationsOf, valueOf, type Argument, type Bean, type Jolokia } from '../../api/jolokia';
import { text } from '../../text/en';
import { java as t } from '../../text/java';
import { DataTable } from '../../ui/DataTable';
import { Loading } from '../../ui/Loading';
import { Outcome } from '../../ui/Outcome';
import { Values } from './BeanValues';

/** format formats a bean's value as text. */
function format(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, undefined, 1) ?? '');
}

/** Asked is the attribute or operation for which a dialog requests values. */
interface Asked {
  title: string;
  body: string;
  action: string;
  args: Argument[];
  initial?: string[];
  run: (values: unknown[]) => Promise<unknown>;
}

/** BeanView shows a bean's attributes, sets them, and runs the bean's operations. */
export function BeanView({ agent, uid, bean }: { agent: Jolokia; uid: string; bean: Bean }) {
  const values = useQuery({ queryKey: ['bean', uid, bean.name], queryFn: () => agent.read(bean.name) });
  const [asked, setAsked] = useState<Asked>();
  const [result, setResult] = useState<{ operation: string; value: unknown }>();
  if (values.error) {
    return <Outcome error={values.error} />;
  }
  if (!values.data) {
    return <Loading />;
  }
  const askValue = (attribute: string, value: unknown) => {
    const { type = '' } = bean.attributes[attribute] ?? {};
    setAsked({
      title: t.set(attribute),
      body: t.setBody(attribute, bean.name),
      action: t.confirmSet,
      args: [{ name: t.value(type), type }],
      initial: [format(value)],
      run: ([wanted]) => agent.write(bean.name, attribute, wanted).then(() => values.refetch()),
    });
  };
  const askArguments = (signature: string, args: Argument[]) =>
    setAsked({
      title: t.run(signature),
      body: t.runBody(signature, bean.name),
      action: t.confirm,
      args: args.map(({ name, type }) => ({ name: t.argument(name, type), type })),
      run: (wanted) => agent.execute(bean.name, signature, wanted).then((value) => setResult({ operation: signature, value })),
    });
  return (
    <>
      <DataTable
        label={t.attributes}
        items={Object.entries(values.data)}
        keyOf={([name]) => name}
        empty={t.attributes}
        columns={[
          { title: t.attribute, cell: ([name]) => name },
          { title: text.forms.value, cell: ([, value]) => format(value), mono: true },
          {
            title: t.action,
            cell: ([name, value]) =>
              bean.attributes[name]?.rw && (
                <Button variant="link" isInline onClick={() => askValue(name, value)}>
                  {t.set(name)}
                </Button>
              ),
          },
        ]}
      />
      <div>
        <Button variant="secondary" onClick={() => void values.refetch()}>
          {text.editor.reload}
        </Button>{' '}
        {operationsOf(bean).map(({ signature, args }) => (
          <Button key={signature} variant="link" onClick={() => askArguments(signature, args)}>
            {t.run(signature)}
          </Button>
        ))}
      </div>
      {result && (
        <Alert isInline component="h3" isLiveRegion variant="success" title={t.ran(result.operation)}>
          <pre className="console-message">{format(result.value)}</pre>
        </Alert>
      )}
      {asked && (
        <Values {...asked} run={(entered) => asked.run(entered.map((one, index) => valueOf(asked.args[index]?.type ?? '', one)))} close={() => setAsked(undefined)} />
      )}
    </>
  );
}
