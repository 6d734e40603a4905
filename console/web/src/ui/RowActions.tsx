import { MenuToggle, type MenuToggleElement } from '@patternfly/react-core';
import EllipsisIcon from '@patternfly/react-icons/dist/esm/icons/rh-ui-ellipsis-vertical-fill-icon';
import { ActionsColumn, type IAction } from '@patternfly/react-table';
import type { Ref } from 'react';
import { text } from '../text/en';

/**
 * RowActions is the menu of a table's row. The button's label contains the name of the row's
 * object.
 */
export function RowActions({ name, items }: { name: string; items: IAction[] }) {
  return (
    <ActionsColumn
      items={items}
      actionsToggle={({ onToggle, isOpen, isDisabled, toggleRef }) => (
        <MenuToggle
          ref={toggleRef as Ref<MenuToggleElement>}
          aria-label={text.list.rowActions(name)}
          variant="plain"
          icon={<EllipsisIcon />}
          isExpanded={isOpen}
          isDisabled={isDisabled}
          onClick={onToggle}
        />
      )}
    />
  );
}
