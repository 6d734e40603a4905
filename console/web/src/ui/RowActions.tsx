import { MenuToggle, type MenuToggleElement } from '@patternfly/react-core';
import EllipsisIcon from '@patternfly/react-icons/dist/esm/icons/rh-ui-ellipsis-vertical-fill-icon';
import { ActionsColumn, type IAction } from '@patternfly/react-table';
import type { Ref } from 'react';
import { text } from '../text/en';

/**
 * page returns the page's main element. Menus are appended to this element, because a table would
 * cut off the menus of its last rows.
 */
const page = () => document.querySelector('main') ?? document.body;

interface RowActionsProps {
  name: string;
  items: IAction[];
  /** onOpen is called when the user presses the menu's button. */
  onOpen?: () => void;
}

/**
 * RowActions is the menu of a table row. The accessible name of its button contains the name of the
 * row's object.
 */
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
