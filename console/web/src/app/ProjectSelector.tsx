import { Divider, Menu, MenuContainer, MenuContent, MenuItem, MenuList, MenuSearch, MenuSearchInput, MenuToggle, SearchInput } from '@patternfly/react-core';
import { useRef, useState } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { displayName, useProjects } from '../api/projects';
import { text } from '../text/en';

/**
 * maxShown is the maximum number of projects in the menu. The filter also finds projects that the
 * menu does not show.
 */
const maxShown = 100;

/** ProjectSelector switches to another project. If possible, it keeps the same page open. */
export function ProjectSelector({ project }: { project: string | undefined }) {
  const [open, setOpen] = useState(false);
  const [filter, setFilter] = useState('');
  const toggle = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const { items } = useProjects();
  const wanted = filter.toLowerCase();
  const matching = items.filter((p) => `${p.metadata.name} ${displayName(p)}`.toLowerCase().includes(wanted));
  const select = (name: string) => {
    setOpen(false);
    setFilter('');
    if (name === '') {
      void navigate('/projects');
      return;
    }
    const page = /^\/project\/[^/]+\/([^/]+)/.exec(pathname)?.[1] ?? 'overview';
    void navigate(`/project/${name}/${page}`);
  };
  return (
    <MenuContainer
      isOpen={open}
      onOpenChange={setOpen}
      toggleRef={toggle}
      popperProps={{ appendTo: 'inline', preventOverflow: true }}
      menuRef={menu}
      toggle={
        <MenuToggle ref={toggle} onClick={() => setOpen(!open)} isExpanded={open} aria-label={`${text.masthead.selectProject}: ${project ?? text.masthead.allProjects}`}>
          {project ?? text.masthead.allProjects}
        </MenuToggle>
      }
      menu={
        <Menu ref={menu} onSelect={(_, id) => select(String(id))} selected={project ?? ''} isScrollable>
          <MenuSearch>
            <MenuSearchInput>
              <SearchInput aria-label={text.masthead.searchProjects} value={filter} onChange={(_, value) => setFilter(value)} onClear={() => setFilter('')} />
            </MenuSearchInput>
          </MenuSearch>
          <Divider />
          <MenuContent>
            <MenuList>
              <MenuItem itemId="">{text.masthead.allProjects}</MenuItem>
              {matching.slice(0, maxShown).map((p) => (
                <MenuItem key={p.metadata.uid} itemId={p.metadata.name} description={displayName(p) || undefined}>
                  {p.metadata.name}
                </MenuItem>
              ))}
              {matching.length === 0 && <MenuItem isDisabled>{text.masthead.noProject}</MenuItem>}
            </MenuList>
          </MenuContent>
        </Menu>
      }
    />
  );
}
