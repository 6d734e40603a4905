import {
  Divider,
  Dropdown,
  DropdownItem,
  DropdownList,
  MenuToggle,
  MenuToggleElement,
  Toolbar as Bar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from '@patternfly/react-core';
import MoonIcon from '@patternfly/react-icons/dist/esm/icons/moon-icon';
import QuestionCircleIcon from '@patternfly/react-icons/dist/esm/icons/question-circle-icon';
import ThIcon from '@patternfly/react-icons/dist/esm/icons/th-icon';
import { useState, type ReactNode, type Ref } from 'react';
import { useNavigate } from 'react-router';
import { config } from '../api/config';
import { useUser } from '../api/hooks';
import { useStore } from '../api/store';
import { text } from '../text/en';
import { constant, launcherLinks, offersTour } from './constants';
import { helpLinks } from './extensions';
import { logOut } from './logout';
import { Badge } from './notifications/Badge';
import { ProjectSelector } from './ProjectSelector';
import { SearchBox } from './SearchBox';
import { theme, type Theme } from './theme';
import { touring } from './tour';

/** tokenPage is the page outside the console that shows a login command with a new token. */
export const tokenPage = '/oauth/token/request';

/** Toolbar is the right part of the masthead: project, theme, help and user. */
export function Toolbar({ project }: { project: string | undefined }) {
  const navigate = useNavigate();
  const user = useUser();
  const chosen = useStore(theme);
  const { adminConsolePublicURL } = useStore(config).clusterInfo;
  const launched = launcherLinks();
  const startTour = () => {
    touring.set(true);
    void navigate('/catalog');
  };
  return (
    <Bar isStatic>
      <ToolbarContent>
        <ToolbarItem data-tour="project">
          <ProjectSelector project={project} />
        </ToolbarItem>
        <ToolbarGroup align={{ default: 'alignEnd' }} variant="action-group-plain">
          {project !== undefined && (
            <>
              <ToolbarItem className="console-search">
                <SearchBox key={project} project={project} />
              </ToolbarItem>
              <ToolbarItem>
                <Badge project={project} />
              </ToolbarItem>
            </>
          )}
          {launched.length > 0 && (
            <ToolbarItem>
              <Menu label={text.masthead.launcher} icon={<ThIcon />}>
                {launched.map(({ label, url, description }) => (
                  <DropdownItem key={url} to={url} description={description} target="_blank" rel="noreferrer">
                    {label}
                  </DropdownItem>
                ))}
              </Menu>
            </ToolbarItem>
          )}
          <ToolbarItem>
            <Menu label={text.masthead.theme} icon={<MoonIcon />}>
              {(Object.keys(text.masthead.themes) as Theme[]).map((name) => (
                <DropdownItem key={name} isSelected={name === chosen} onClick={() => theme.set(name)}>
                  {text.masthead.themes[name]}
                </DropdownItem>
              ))}
            </Menu>
          </ToolbarItem>
          <ToolbarItem data-tour="help">
            <Menu label={text.masthead.help} icon={<QuestionCircleIcon />}>
              <DropdownItem onClick={() => void navigate('/command-line')}>{text.masthead.commandLine}</DropdownItem>
              {helpLinks().map(([name, address]) => (
                <DropdownItem key={name} to={address} target="_blank" rel="noreferrer">
                  {name}
                </DropdownItem>
              ))}
              {offersTour() && <DropdownItem onClick={startTour}>{text.masthead.tour}</DropdownItem>}
              <DropdownItem onClick={() => void navigate('/about')}>{text.masthead.about}</DropdownItem>
            </Menu>
          </ToolbarItem>
          <ToolbarItem data-tour="user">
            <Menu label={`${text.masthead.user}: ${user?.metadata.name ?? ''}`} title={user?.metadata.name ?? ''}>
              {constant('DISABLE_COPY_LOGIN_COMMAND') !== true && (
                <DropdownItem to={tokenPage} target="_blank" rel="noreferrer">
                  {text.masthead.copyLogin}
                </DropdownItem>
              )}
              {adminConsolePublicURL !== '' && (
                <DropdownItem to={adminConsolePublicURL} target="_blank" rel="noreferrer">
                  {text.masthead.adminConsole}
                </DropdownItem>
              )}
              <Divider component="li" />
              <DropdownItem onClick={logOut}>{text.masthead.logOut}</DropdownItem>
            </Menu>
          </ToolbarItem>
        </ToolbarGroup>
      </ToolbarContent>
    </Bar>
  );
}

function Menu({ label, title, icon, children }: { label: string; title?: string; icon?: ReactNode; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <Dropdown
      isOpen={open}
      onOpenChange={setOpen}
      onSelect={() => setOpen(false)}
      popperProps={{ position: 'right', appendTo: 'inline' }}
      toggle={(ref: Ref<MenuToggleElement>) => (
        <MenuToggle ref={ref} variant={icon ? 'plain' : 'plainText'} aria-label={label} isExpanded={open} onClick={() => setOpen(!open)}>
          {icon ?? title}
        </MenuToggle>
      )}
    >
      <DropdownList>{children}</DropdownList>
    </Dropdown>
  );
}
