import {
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadLogo,
  MastheadMain,
  MastheadToggle,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
} from '@patternfly/react-core';
import BarsIcon from '@patternfly/react-icons/dist/esm/icons/bars-icon';
import { lazy, Suspense } from 'react';
import { Link, Outlet, useParams } from 'react-router';
import { useStore } from '../api/store';
import { text } from '../text/en';
import { Expired } from './Expired';
import { Inactivity } from './Inactivity';
import { persistent } from './load';
import { isOpen } from './notifications/notifications';
import { Sidebar } from './Sidebar';
import { Toolbar } from './Toolbar';

const mainID = 'main';

const Drawer = lazy(persistent(() => import('./notifications/Drawer')));

/** Component is the frame around all pages. */
export function Component() {
  const { project } = useParams();
  const open = useStore(isOpen);
  const masthead = (
    <Masthead>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton variant="plain" aria-label={text.nav.toggle}>
            <BarsIcon />
          </PageToggleButton>
        </MastheadToggle>
        <MastheadBrand>
          <MastheadLogo component={(props) => <Link {...props} to="/projects" />}>
            <span className="console-brand">
              <img src="/console/icon.svg" alt="" />
              {text.product}
            </span>
          </MastheadLogo>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar project={project} />
      </MastheadContent>
    </Masthead>
  );
  return (
    <Page
      masthead={masthead}
      isManagedSidebar
      isNotificationDrawerExpanded={project !== undefined && open}
      notificationDrawer={
        project !== undefined && open ? (
          <aside aria-label={text.notifications.title}>
            <Suspense>
              <Drawer project={project} />
            </Suspense>
          </aside>
        ) : (
          <></>
        )
      }
      mainContainerId={mainID}
      skipToContent={<SkipToContent href={'#' + mainID}>{text.nav.skip}</SkipToContent>}
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Sidebar project={project} />
          </PageSidebarBody>
        </PageSidebar>
      }
    >
      <Expired />
      <Inactivity />
      <Outlet />
    </Page>
  );
}
