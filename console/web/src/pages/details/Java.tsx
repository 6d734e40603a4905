import { Alert, EmptyState, FormSelect, FormSelectOption, Title, ToggleGroup, ToggleGroupItem, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { componentsOf, Jolokia, jolokiaPort } from '../../api/jolokia';
import { java as t } from '../../text/java';
import { Failure } from '../../ui/Failure';
import { Loading } from '../../ui/Loading';
import { BeanView } from './Bean';
import type { TabProps } from './tabs';
import { Threads } from './Threads';


/** Java is the tab with the beans and threads of a pod's JVM. */
export default function Java({ project, object }: TabProps) {
  const { uid } = object.metadata;
  const agent = useMemo(() => new Jolokia(object), [uid]);
  const beans = useQuery({ queryKey: ['beans', uid], queryFn: () => agent.beans(), enabled: jolokiaPort(object) !== undefined });
  const [page, setPage] = useState(t.jmx);
  const [chosen, setChosen] = useState('');
  if (jolokiaPort(object) === undefined) {
    return <EmptyState headingLevel="h2" titleText={t.none} />;
  }
  if (beans.error) {
    return <Failure error={beans.error} project={project} retry={() => void beans.refetch()} />;
  }
  if (!beans.data) {
    return <Loading />;
  }
  const components = componentsOf(beans.data);
  const domain = components.find(([name]) => name === page)?.[1];
  const shown = beans.data.filter((bean) => domain?.test(bean.domain) ?? true);
  const bean = shown.find(({ name }) => name === chosen) ?? shown[0];
  return (
    <>
      <Toolbar>
        <ToolbarContent>
          <ToolbarItem>
            <ToggleGroup aria-label={t.title}>
              {[t.jmx, t.threads, ...components.map(([name]) => name)].map((name) => (
                <ToggleGroupItem key={name} text={name} isSelected={name === page} onChange={() => setPage(name)} />
              ))}
            </ToggleGroup>
          </ToolbarItem>
          {page !== t.threads && (
            <ToolbarItem className="console-wide">
              <FormSelect aria-label={t.bean} value={bean?.name} onChange={(_, name) => setChosen(name)}>
                {shown.map(({ name }) => (
                  <FormSelectOption key={name} value={name} label={name} />
                ))}
              </FormSelect>
            </ToolbarItem>
          )}
        </ToolbarContent>
      </Toolbar>
      {page === t.threads ? (
        <Threads agent={agent} uid={uid} />
      ) : bean ? (
        <>
          <Title headingLevel="h2">{bean.name}</Title>
          <BeanView key={bean.name} agent={agent} uid={uid} bean={bean} />
        </>
      ) : (
        <Alert isInline component="h2" variant="info" title={t.noBeans} />
      )}
    </>
  );
}
