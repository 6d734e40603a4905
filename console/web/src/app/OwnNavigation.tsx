import { NavExpandable, NavItem } from '@patternfly/react-core';
import { NavLink } from 'react-router';
import { isURL, ownNavigation } from './constants';

/** OwnNavigation shows what scripts add to the navigation of a project. */
export function OwnNavigation({ project, isActive }: { project: string; isActive: (path: string) => boolean }) {
  return ownNavigation(project).map(({ label, entries }) => {
    const items = entries.map((entry) => (
      <NavItem key={entry.path} itemId={entry.path} isActive={isActive(entry.path)}>
        {isURL(entry.path) ? (
          <a href={entry.path} target="_blank" rel="noreferrer">
            {entry.label}
          </a>
        ) : (
          <NavLink to={entry.path}>{entry.label}</NavLink>
        )}
      </NavItem>
    ));
    return label === undefined ? (
      items
    ) : (
      <NavExpandable key={label} title={label}>
        {items}
      </NavExpandable>
    );
  });
}
