import { Alert, Toolbar, ToolbarContent, ToolbarItem } from '@patternfly/react-core';
import { useState, type ReactNode } from 'react';
import type { LooseObject } from '../../api/types';
import { text } from '../../text/en';
import { ContainerSelect } from '../../ui/ContainerSelect';
import { containersOf, isRunning } from './containers';

/**
 * WithContainer shows content for a container that has started. If there are several such
 * containers, the user selects one.
 */
export function WithContainer({ object, children }: { object: LooseObject; children: (container: string) => ReactNode }) {
  const containers = containersOf(object);
  const [container, setContainer] = useState(containers[0] ?? '');
  return (
    <>
      {containers.length > 1 && (
        <Toolbar>
          <ToolbarContent>
            <ToolbarItem>
              <ContainerSelect containers={containers} value={container} onChange={setContainer} />
            </ToolbarItem>
          </ToolbarContent>
        </Toolbar>
      )}
      {isRunning(object, container) ? children(container) : <Alert isInline component="h2" variant="info" title={text.terminal.notRunning} />}
    </>
  );
}
