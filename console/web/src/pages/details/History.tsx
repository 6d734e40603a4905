import { Button, Checkbox, EmptyState, Label } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useState } from 'react';
import { Link } from 'react-router';
import { pathOf } from '../../api/discovery';
import { causeOf, numberOf, phaseOf, revisionsID, revisionsOf, revisionsPath, rollBack, templateOf, type Included, type Revision } from '../../api/history';
import { useObjects, useRights } from '../../api/hooks';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { FormDialog } from '../../ui/FormDialog';
import { Loading } from '../../ui/Loading';
import type { TabProps } from './tabs';

/**
 * History is the tab with a workload's revisions. Users can roll the workload back to a revision.
 */
export default function History({ resource, project, object }: TabProps) {
  const rights = useRights(project);
  const { items, loaded } = useObjects<Revision>(revisionsPath(object));
  const [chosen, setChosen] = useState<Revision>();
  if (!loaded) {
    return <Loading />;
  }
  const revisions = revisionsOf(object, items);
  if (revisions.length === 0) {
    return <EmptyState headingLevel="h2" titleText={text.history.empty} />;
  }
  const mayChange = rights.may('update', resource.group, resource.name, object.metadata.name) && rights.may('patch', resource.group, resource.name, object.metadata.name);
  return (
    <>
      <Table aria-label={text.details.tabs.history} variant="compact">
        <Thead>
          <Tr>
            <Th>{text.history.revision}</Th>
            <Th>{text.name}</Th>
            <Th>{text.pod.image}</Th>
            <Th>{text.workload.replicas}</Th>
            <Th>{text.details.reason}</Th>
            <Th>{text.age}</Th>
            <Th screenReaderText={text.actions} />
          </Tr>
        </Thead>
        <Tbody>
          {revisions.map((revision, index) => (
            <Tr key={revision.metadata.uid}>
              <Td dataLabel={text.history.revision}>
                {numberOf(revision)} {index === 0 && <Label color="blue">{text.history.current}</Label>} {phaseOf(revision) && <Label>{phaseOf(revision)}</Label>}
              </Td>
              <Td dataLabel={text.name}>
                <Link to={`/project/${project}/${revisionsID(object)}/${revision.metadata.name}`}>{revision.metadata.name}</Link>
              </Td>
              <Td dataLabel={text.pod.image} className="console-mono" modifier="breakWord">
                {(templateOf(revision)?.spec?.containers ?? []).map((container) => (
                  <div key={container.name}>{container.image}</div>
                ))}
              </Td>
              <Td dataLabel={text.workload.replicas}>{revision.data ? '-' : (revision.spec?.replicas ?? 0)}</Td>
              <Td dataLabel={text.details.reason}>{causeOf(revision) || '-'}</Td>
              <Td dataLabel={text.age}>
                <Age of={revision.metadata.creationTimestamp} />
              </Td>
              <Td isActionCell>
                {index > 0 && mayChange && (
                  <Button variant="link" onClick={() => setChosen(revision)}>
                    {text.history.rollBack(numberOf(revision))}
                  </Button>
                )}
              </Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {chosen && (
        <RollBack
          revision={chosen}
          withChoice={object.kind === 'DeploymentConfig'}
          run={(included) => rollBack(pathOf(resource, project, object.metadata.name), object, chosen, included)}
          close={() => setChosen(undefined)}
        />
      )}
    </>
  );
}

interface RollBackProps {
  revision: Revision;
  withChoice: boolean;
  run: (included: Included) => Promise<void>;
  close: () => void;
}

/** RollBack lets the user select the parts that a rollback includes. */
function RollBack({ revision, withChoice, run, close }: RollBackProps) {
  const [included, setIncluded] = useState<Included>({ replicas: false, strategy: false, triggers: false });
  return (
    <FormDialog title={text.history.rollBack(numberOf(revision))} body={text.history.body} action={text.history.confirm} submit={() => run(included).then(close)} close={close}>
      {withChoice &&
        (Object.keys(included) as (keyof Included)[]).map((key) => (
          <Checkbox key={key} id={`include-${key}`} label={text.history.included[key]} isChecked={included[key]} onChange={(_, checked) => setIncluded({ ...included, [key]: checked })} />
        ))}
    </FormDialog>
  );
}
