import { createBrowserRouter, redirect } from 'react-router';
import { RouteFailure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
import { constant } from './constants';
import { createPath } from './createLink';
import { extensionsLoaded } from './extensions';
import { persistent } from './load';

/** publicPages contains the pages that require no session. */
const publicPages = ['/console/error', '/console/logged-out'];

/** isPublic reports whether users who are not logged in can open a page. */
export function isPublic(path: string): boolean {
  return publicPages.includes(path);
}

/** redirectTo redirects to a path that depends on the constants of extensions. */
async function redirectTo(path: () => string) {
  await extensionsLoaded;
  return redirect(path());
}

/** router maps paths to pages. A page is loaded when it is first opened. */
export const router = createBrowserRouter(
  [
    {
      ErrorBoundary: RouteFailure,
      HydrateFallback: Loading,
      children: [
        { path: 'error', lazy: persistent(() => import('../pages/LoginFailed')) },
        { path: 'logged-out', lazy: persistent(() => import('../pages/LoggedOut')) },
        { path: 'signed-in', lazy: persistent(() => import('../pages/SignedIn')) },
        {
          lazy: persistent(() => import('./Shell')),
          HydrateFallback: Loading,
          children: [
            {
              ErrorBoundary: RouteFailure,
              children: [
                { index: true, loader: () => redirectTo(() => (constant('DISABLE_SERVICE_CATALOG_LANDING_PAGE') === true ? '/projects' : '/catalog')) },
                { path: 'create', loader: ({ request }) => redirectTo(() => createPath(new URL(request.url).searchParams)) },
                { path: 'create-project', loader: () => redirect('/projects?create') },
                { path: 'catalog', lazy: persistent(() => import('../pages/catalog/Catalog')) },
                { path: 'catalog/template/:namespace/:name', lazy: persistent(() => import('../pages/catalog/TemplateForm')) },
                { path: 'catalog/builder/:namespace/:name', lazy: persistent(() => import('../pages/catalog/BuilderForm')) },
                { path: 'catalog/image', lazy: persistent(() => import('../pages/catalog/ImageForm')) },
                { path: 'catalog/git', lazy: persistent(() => import('../pages/catalog/GitForm')) },
                { path: 'catalog/dockerfile', lazy: persistent(() => import('../pages/catalog/DockerfileForm')) },
                { path: 'catalog/service/:place/:name', lazy: persistent(() => import('../pages/catalog/ServiceForm')) },
                { path: 'projects', lazy: persistent(() => import('../pages/Projects')) },
                { path: 'command-line', lazy: persistent(() => import('../pages/CommandLine')) },
                { path: 'about', lazy: persistent(() => import('../pages/About')) },
                { path: 'project/:project', loader: ({ params }) => redirect(`/project/${params.project}/overview`) },
                { path: 'project/:project/overview', lazy: persistent(() => import('../pages/overview/Overview')) },
                { path: 'project/:project/catalog', lazy: persistent(() => import('../pages/catalog/Catalog')) },
                { path: 'project/:project/import', lazy: persistent(() => import('../pages/Import')) },
                { path: 'project/:project/search', lazy: persistent(() => import('../pages/search/Search')) },
                { path: 'project/:project/monitoring', lazy: persistent(() => import('../pages/monitoring/Monitoring')) },
                { path: 'project/:project/membership', lazy: persistent(() => import('../pages/membership/Membership')) },
                { path: 'project/:project/quota', lazy: persistent(() => import('../pages/quota/Quota')) },
                { path: 'project/:project/topology', lazy: persistent(() => import('../pages/topology/Topology')) },
                { path: 'project/:project/network', lazy: persistent(() => import('../pages/network/Network')) },
                { path: 'project/:project/who-can', lazy: persistent(() => import('../pages/access/WhoCan')) },
                { path: 'project/:project/extension/:page', lazy: persistent(() => import('../pages/Extension')) },
                { path: 'project/:project/other', lazy: persistent(() => import('../pages/Other')) },
                { path: 'project/:project/create/:resource', lazy: persistent(() => import('../pages/forms/CreateObject')) },
                { path: 'project/:project/:resource', lazy: persistent(() => import('../pages/ResourceList')) },
                { path: 'project/:project/:resource/:name', lazy: persistent(() => import('../pages/details/Details')) },
                { path: 'project/:project/:resource/:name/:tab', lazy: persistent(() => import('../pages/details/Details')) },
                { path: 'cluster/import', lazy: persistent(() => import('../pages/Import')) },
                { path: 'cluster/storage-drivers', lazy: persistent(() => import('../pages/cluster/StorageDrivers')) },
                { path: 'cluster/hosts', lazy: persistent(() => import('../pages/hosts/Hosts')) },
                { path: 'cluster/routers', lazy: persistent(() => import('../pages/network/Routers')) },
                { path: 'cluster/who-can', lazy: persistent(() => import('../pages/access/WhoCan')) },
                { path: 'cluster/image-usage', lazy: persistent(() => import('../pages/images/Images')) },
                { path: 'cluster/audit', lazy: persistent(() => import('../pages/audit/Audit')) },
                { path: 'cluster/other', lazy: persistent(() => import('../pages/Other')) },
                { path: 'cluster/extension/:page', lazy: persistent(() => import('../pages/Extension')) },
                { path: 'cluster/:resource', lazy: persistent(() => import('../pages/ResourceList')) },
                { path: 'cluster/:resource/:name', lazy: persistent(() => import('../pages/details/Details')) },
                { path: 'cluster/:resource/:name/:tab', lazy: persistent(() => import('../pages/details/Details')) },
                { path: '*', lazy: persistent(() => import('../pages/NotFound')) },
              ],
            },
          ],
        },
      ],
    },
  ],
  { basename: '/console' },
);
