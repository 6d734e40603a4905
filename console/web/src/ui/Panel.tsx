import { Card, CardBody, CardTitle, StackItem } from '@patternfly/react-core';
import type { ReactNode } from 'react';

/** Panel is a part of a page with a heading. Its parent must be a Stack. */
export function Panel({ title, children }: { title: ReactNode; children: ReactNode }) {
  return (
    <StackItem>
      <Card>
        <CardTitle component="h2">{title}</CardTitle>
        <CardBody>{children}</CardBody>
      </Card>
    </StackItem>
  );
}
