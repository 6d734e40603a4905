import { Nav, NavExpandable, NavItem, NavList } from '@patternfly/react-core';
import { NavLink, useLocation } from 'react-router';
import { useResources, useRights } from '../api/hooks';
import { text } from '../text/en';
import { extensionPages } from './extensions';
import { mayImport, sectionsOf, type Entry } from './navigation';
import { OwnNavigation } from './OwnNavigation';

/**
 * Sidebar is the navigation for a project or for the cluster. It lists the pages that the user may
 * see.
 */
export function Sidebar({ project }: { project: string | undefined }) {
  const { pathname } = useLocation();
  const resources = useResources();
  const rights = useRights(project);
  const cluster = useRights(undefined);
  const sections = project !== undefined || pathname.startsWith('/cluster') ? (resources ? sectionsOf(project, resources, rights) : []) : [];
  const isImporter = resources !== undefined && mayImport(project, resources, rights);
  const administrator = cluster.may('list', '', 'nodes');
  const extended = project !== undefined ? extensionPages('project') : pathname.startsWith('/cluster') ? extensionPages('cluster') : [];
  const isActive = (path: string) => pathname === path || pathname.startsWith(path + '/');
  const pages: [label: string, path: string, offered: boolean][] = [
    [text.nav.import, '/cluster/import', isImporter],
    [text.nav.hosts, '/cluster/hosts', administrator],
    [text.nav.routers, '/cluster/routers', cluster.may('list', 'route.openshift.io', 'routes')],
    [text.nav.images, '/cluster/image-usage', cluster.may('list', 'image.openshift.io', 'images')],
    [text.nav.whoCan, '/cluster/who-can', cluster.may('create', 'authorization.openshift.io', 'resourceaccessreviews')],
    [text.nav.audit, '/cluster/audit', cluster.may('*', '*', '*')],
    [text.drivers.title, '/cluster/storage-drivers', cluster.may('get', '', 'nodes/proxy')],
  ];
  const item = (entry: Entry) => (
    <NavItem key={entry.path} itemId={entry.path} isActive={isActive(entry.path)}>
      <NavLink to={entry.path}>{entry.label}</NavLink>
    </NavItem>
  );
  return (
    <Nav aria-label={text.nav.label}>
      <NavList>
        {project === undefined ? (
          <>
            {item({ label: text.nav.catalog, path: '/catalog' })}
            {item({ label: text.nav.projects, path: '/projects' })}
          </>
        ) : (
          <>
            {item({ label: text.nav.overview, path: `/project/${project}/overview` })}
            {item({ label: text.nav.topology, path: `/project/${project}/topology` })}
            {item({ label: text.search.title, path: `/project/${project}/search` })}
            {item({ label: text.nav.catalog, path: `/project/${project}/catalog` })}
            {isImporter && item({ label: text.nav.import, path: `/project/${project}/import` })}
          </>
        )}
        {sections.map((section) => (
          <NavExpandable
            key={section.label}
            title={section.label}
            isActive={section.entries.some((entry) => isActive(entry.path))}
            isExpanded={section.entries.some((entry) => isActive(entry.path)) || undefined}
          >
            {section.entries.map(item)}
          </NavExpandable>
        ))}
        {project !== undefined && rights.may('list', '', 'events') && item({ label: text.monitoring.title, path: `/project/${project}/monitoring` })}
        {project !== undefined && rights.may('list', 'networking.k8s.io', 'networkpolicies') && item({ label: text.nav.network, path: `/project/${project}/network` })}
        {project !== undefined && rights.may('list', '', 'resourcequotas') && item({ label: text.quota.title, path: `/project/${project}/quota` })}
        {project !== undefined && rights.may('list', 'rbac.authorization.k8s.io', 'rolebindings') && item({ label: text.membership.title, path: `/project/${project}/membership` })}
        {(project !== undefined || pathname.startsWith('/cluster')) && item({ label: text.nav.other, path: `${project === undefined ? '/cluster' : `/project/${project}`}/other` })}
        {project === undefined && pathname.startsWith('/cluster') && pages.filter(([, , offered]) => offered).map(([label, path]) => item({ label, path }))}
        {extended.map(({ path, title }) => item({ label: title, path: `${project === undefined ? '/cluster' : `/project/${project}`}/extension/${path}` }))}
        {project !== undefined && <OwnNavigation project={project} isActive={isActive} />}
        {project === undefined && administrator && !pathname.startsWith('/cluster') && item({ label: text.nav.administration, path: '/cluster/nodes' })}
      </NavList>
    </Nav>
  );
}
