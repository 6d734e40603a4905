import { MenuToggle, type MenuToggleElement } from '@patternfly/react-core';
import EllipsisIcon from '@patternfly/react-icons/dist/esm/icons/rh-ui-ellipsis-vertical-fill-icon';
import { ActionsColumn, type IAction } from '@patternfly/react-table';
import type { Ref } from 'react';
import { text } from '../text/en';

/**
 * page returns the page's main element, which menus are appended to. The table would cut off a menu
 * of its last rows.
 */
const page = () => document.querySelector('main') ?? document.body;

interface RowActionsProps {
  name: string;
  items: IAction[];
  /** onOpen is called when the user presses the button of the menu. */
  onOpen?: () => void;
}

/** RowActions is the menu of a row of a table. Its button names the object of the row. */
export function RowActions({ name, items, onOpen }: RowActionsProps) {
  return (
    <ActionsColumn
      items={items}
      popperProps={{ appendTo: page, position: 'end' }}
      actionsToggle={({ onToggle, isOpen, isDisabled, toggleRef }) => (
        <MenuToggle
          ref={toggleRef as Ref<MenuToggleElement>}
          aria-label={text.list.rowActions(name)}
          variant="plain"
          icon={<EllipsisIcon />}
          isExpanded={isOpen}
          isDisabled={isDisabled}
          onClick={(event) => {
            onOpen?.();
            onToggle(event);
          }}
        />
      )}
    />
  );
}
