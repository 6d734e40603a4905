import { Alert, AlertActionCloseButton, AlertActionLink, AlertGroup, Dropdown, DropdownItem, DropdownList, MenuToggle, type MenuToggleElement } from '@patternfly/react-core';
import { Suspense, useState, type Ref } from 'react';
import { useNavigate } from 'react-router';
import { pathOf, type Resource } from '../../api/discovery';
import { useResources, useRights } from '../../api/hooks';
import { ConnectionError, remove } from '../../api/http';
import type { LooseObject } from '../../api/types';
import { words } from '../../app/navigation';
import { text } from '../../text/en';
import { Confirm } from '../../ui/Confirm';
import { dialogs } from './dialogs';
import { actionsOf, linksOf, type Action } from './verbs';
import { Scale } from './Scale';

interface ActionsProps {
  resource: Resource;
  project: string | undefined;
  object: LooseObject;
}

/** Result is an action's result. */
interface Result {
  action: Action;
  error?: Error;
}

function titleOf({ action, error }: Result): string {
  if (!error) {
    return text.workload.triggered;
  }
  return error instanceof ConnectionError ? text.workload.unconfirmed(action.label) : text.workload.failed(action.label);
}

/** Actions is the menu of the actions that the user may perform on an object. */
export function Actions({ resource, project, object }: ActionsProps) {
  const rights = useRights(project);
  const navigate = useNavigate();
  const [open, setOpen] = useState(false);
  const [dialog, setDialog] = useState<string>();
  const [result, setResult] = useState<Result>();
  const name = object.metadata.name;
  const run = (action: Action) => {
    setResult(undefined);
    action.run().then(
      () => setResult({ action }),
      (error: Error) => setResult({ action, error }),
    );
  };
  const actions = actionsOf(object, resource, rights);
  const links = linksOf(object, useResources(), rights);
  const offered = dialogs.filter((candidate) => candidate.applies(object, resource, rights));
  const Opened = offered.find(({ key }) => key === dialog)?.component;
  const mayScale = resource.subresources.includes('scale') && rights.may('patch', resource.group, `${resource.name}/scale`);
  const mayDelete = resource.verbs.includes('delete') && rights.may('delete', resource.group, resource.name, name);
  if (actions.length === 0 && links.length === 0 && offered.length === 0 && !mayScale && !mayDelete) {
    return null;
  }
  return (
    <>
      <Dropdown
        isOpen={open}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        popperProps={{ position: 'right', appendTo: 'inline' }}
        toggle={(ref: Ref<MenuToggleElement>) => (
          <MenuToggle ref={ref} variant="primary" isExpanded={open} onClick={() => setOpen(!open)}>
            {text.actions}
          </MenuToggle>
        )}
      >
        <DropdownList>
          {actions.map((action) => (
            <DropdownItem key={action.label} onClick={() => run(action)}>
              {action.label}
            </DropdownItem>
          ))}
          {links.map(({ label, to }) => (
            <DropdownItem key={label} onClick={() => void navigate(to)}>
              {label}
            </DropdownItem>
          ))}
          {offered.map(({ key, label }) => (
            <DropdownItem key={key} onClick={() => setDialog(key)}>
              {label}
            </DropdownItem>
          ))}
          {mayScale && <DropdownItem onClick={() => setDialog('scale')}>{text.workload.scale}</DropdownItem>}
          {mayDelete && (
            <DropdownItem isDanger onClick={() => setDialog('delete')}>
              {text.delete}
            </DropdownItem>
          )}
        </DropdownList>
      </Dropdown>
      {result && (
        <AlertGroup isToast isLiveRegion>
          <Alert
            component="h2"
            variant={result.error ? 'danger' : 'success'}
            title={titleOf(result)}
            timeout={!result.error}
            onTimeout={() => setResult(undefined)}
            actionClose={<AlertActionCloseButton onClose={() => setResult(undefined)} />}
            actionLinks={result.error instanceof ConnectionError && <AlertActionLink onClick={() => run(result.action)}>{text.retry}</AlertActionLink>}
          >
            {result.error?.message}
          </Alert>
        </AlertGroup>
      )}
      {Opened && (
        <Suspense>
          <Opened object={object} path={pathOf(resource, project, name)} close={() => setDialog(undefined)} />
        </Suspense>
      )}
      {dialog === 'scale' && <Scale path={pathOf(resource, project, name)} current={(object.spec as { replicas?: number }).replicas ?? 1} close={() => setDialog(undefined)} />}
      {dialog === 'delete' && (
        <Confirm
          title={text.details.deleteTitle(words(resource.kind))}
          body={text.details.deleteBody(name)}
          action={text.delete}
          run={() => remove(pathOf(resource, project, name)).then(() => void navigate(project === undefined ? `/cluster/${resource.id}` : `/project/${project}/${resource.id}`))}
          close={() => setDialog(undefined)}
        />
      )}
    </>
  );
}
