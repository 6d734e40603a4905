import { DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, Label, LabelGroup, Stack, StackItem, Title } from '@patternfly/react-core';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import type { ReactNode } from 'react';
import { cellsOf, titleOf } from '../../api/columns';
import type { Resource } from '../../api/discovery';
import { useTable } from '../../api/hooks';
import type { Condition, LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { Age } from '../../ui/Age';
import { ObjectLink } from '../../ui/ObjectLink';
import { factsOf } from './facts';
import { sectionsOf } from './sections';
import type { TabProps } from './tabs';

/**
 * Summary is the tab with the fields that every object has, followed by facts that depend on the
 * object's kind. If the console has no facts for a kind, the tab shows the server's columns.
 */
export default function Summary({ object, project, resource }: TabProps) {
  const { metadata } = object;
  const facts = factsOf(object, project);
  const conditions = conditionsOf(object);
  return (
    <Stack hasGutter>
      <StackItem>
        <DescriptionList isHorizontal isCompact>
          {facts.map(([term, value]) => (
            <Fact key={term} term={term}>
              {value}
            </Fact>
          ))}
          {facts.length === 0 && <ServerFacts resource={resource} project={project} name={metadata.name} />}
          <Fact term={text.details.labels}>
            <Pairs of={metadata.labels} />
          </Fact>
          <Fact term={text.details.annotations}>
            <Pairs of={metadata.annotations} />
          </Fact>
          <Fact term={text.details.owner}>
            <Owners object={object} />
          </Fact>
          <Fact term={text.details.created}>
            <Age of={metadata.creationTimestamp} />
          </Fact>
        </DescriptionList>
      </StackItem>
      {sectionsOf(object).map(([title, section]) => (
        <StackItem key={title}>
          <Title headingLevel="h2">{title}</Title>
          {section}
        </StackItem>
      ))}
      {conditions.length > 0 && (
        <StackItem>
          <Title headingLevel="h2">{text.details.conditions}</Title>
          <Conditions conditions={conditions} />
        </StackItem>
      )}
    </Stack>
  );
}

/** ServerFacts shows the columns that the server chooses for an object. */
function ServerFacts({ resource, project, name }: { resource: Resource; project: string | undefined; name: string }) {
  const table = useTable(resource, project, { fieldSelector: `metadata.name=${name}` });
  return cellsOf(table).map(([term, value]) => (
    <Fact key={term} term={titleOf(term)}>
      <span className="console-break">{value}</span>
    </Fact>
  ));
}

function Fact({ term, children }: { term: string; children: ReactNode }) {
  return (
    <DescriptionListGroup>
      <DescriptionListTerm>{term}</DescriptionListTerm>
      <DescriptionListDescription>{children}</DescriptionListDescription>
    </DescriptionListGroup>
  );
}

/**
 * maxValue is the maximum number of characters that are shown of an annotation. The YAML tab shows
 * the complete annotation.
 */
const maxValue = 80;

function Pairs({ of }: { of: Record<string, string> | undefined }) {
  const pairs = Object.entries(of ?? {});
  if (pairs.length === 0) {
    return <>{text.none}</>;
  }
  return (
    <LabelGroup numLabels={8}>
      {pairs.map(([key, value]) => (
        <Label key={key} variant="outline" textMaxWidth="min(32rem, 60vw)">
          {`${key}=${value.length > maxValue ? value.slice(0, maxValue) + '…' : value}`}
        </Label>
      ))}
    </LabelGroup>
  );
}

function Owners({ object }: { object: LooseObject }) {
  const { ownerReferences: owners = [], namespace } = object.metadata;
  if (owners.length === 0) {
    return <>{text.none}</>;
  }
  return owners.map((owner) => (
    <div key={owner.uid}>
      <ObjectLink of={{ ...owner, namespace }} />
    </div>
  ));
}

/** conditionsOf returns the conditions in an object's status, if they have the usual form. */
function conditionsOf(object: LooseObject): Condition[] {
  const conditions = (object.status as { conditions?: unknown } | undefined)?.conditions;
  return Array.isArray(conditions) ? conditions.filter((c): c is Condition => typeof (c as Condition)?.type === 'string') : [];
}

function Conditions({ conditions }: { conditions: Condition[] }) {
  return (
    <Table aria-label={text.details.conditions} variant="compact">
      <Thead>
        <Tr>
          <Th>{text.details.type}</Th>
          <Th>{text.details.status}</Th>
          <Th>{text.details.reason}</Th>
          <Th>{text.details.message}</Th>
          <Th modifier="wrap">{text.details.changed}</Th>
        </Tr>
      </Thead>
      <Tbody>
        {conditions.map((condition) => (
          <Tr key={condition.type}>
            <Td dataLabel={text.details.type}>{condition.type}</Td>
            <Td dataLabel={text.details.status}>{condition.status}</Td>
            <Td dataLabel={text.details.reason}>{condition.reason ?? '-'}</Td>
            <Td dataLabel={text.details.message} modifier="breakWord">
              {condition.message || '-'}
            </Td>
            <Td dataLabel={text.details.changed}>
              <Age of={condition.lastTransitionTime} />
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
