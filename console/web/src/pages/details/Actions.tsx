import { Alert, AlertActionCloseButton, AlertGroup, Dropdown, DropdownItem, DropdownList, MenuToggle, type MenuToggleElement } from '@patternfly/react-core';
import { useState, type Ref } from 'react';
import { useNavigate } from 'react-router';
import { pathOf, type Resource } from '../../api/discovery';
import { useRights } from '../../api/hooks';
import { remove } from '../../api/http';
import type { LooseObject } from '../../api/types';
import { words } from '../../app/navigation';
import { text } from '../../text/en';
import { Confirm } from '../../ui/Confirm';
import { actionsOf } from './verbs';
import { Scale } from './Scale';

interface ActionsProps {
  resource: Resource;
  project: string | undefined;
  object: LooseObject;
}

/** Actions is the menu of what the user may do with an object. */
export function Actions({ resource, project, object }: ActionsProps) {
  const rights = useRights(project);
  const navigate = useNavigate();
  const [open, setOpen] = useState(false);
  const [dialog, setDialog] = useState<'delete' | 'scale'>();
  const [result, setResult] = useState<{ title: string; failed: boolean }>();
  const name = object.metadata.name;
  const run = (action: () => Promise<unknown>) => {
    setResult(undefined);
    action().then(
      () => setResult({ title: text.workload.triggered, failed: false }),
      (error: Error) => setResult({ title: error.message, failed: true }),
    );
  };
  const actions = actionsOf(object, resource, rights);
  const mayScale = resource.subresources.includes('scale') && rights.may('patch', resource.group, `${resource.name}/scale`);
  const mayDelete = resource.verbs.includes('delete') && rights.may('delete', resource.group, resource.name, name);
  if (actions.length === 0 && !mayScale && !mayDelete) {
    return null;
  }
  return (
    <>
      <Dropdown
        isOpen={open}
        onOpenChange={setOpen}
        onSelect={() => setOpen(false)}
        popperProps={{ position: 'right' }}
        toggle={(ref: Ref<MenuToggleElement>) => (
          <MenuToggle ref={ref} variant="primary" isExpanded={open} onClick={() => setOpen(!open)}>
            {text.actions}
          </MenuToggle>
        )}
      >
        <DropdownList>
          {actions.map((action) => (
            <DropdownItem key={action.label} onClick={() => run(action.run)}>
              {action.label}
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
          <Alert variant={result.failed ? 'danger' : 'success'} title={result.title} timeout={!result.failed} onTimeout={() => setResult(undefined)} actionClose={<AlertActionCloseButton onClose={() => setResult(undefined)} />} />
        </AlertGroup>
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
