import { createBrowserRouter, redirect } from 'react-router';
import { RouteFailure } from '../ui/Failure';
import { Loading } from '../ui/Loading';

/** publicPages need no session. */
const publicPages = ['/console/error', '/console/logged-out'];

/** isPublic reports whether a page is for users who are not logged in. */
export function isPublic(path: string): boolean {
  return publicPages.includes(path);
}

/** router maps paths to pages. Each page is loaded when it is opened. */
export const router = createBrowserRouter(
  [
    {
      ErrorBoundary: RouteFailure,
      HydrateFallback: Loading,
      children: [
        { path: 'error', lazy: () => import('../pages/LoginFailed') },
        { path: 'logged-out', lazy: () => import('../pages/LoggedOut') },
        { path: 'signed-in', lazy: () => import('../pages/SignedIn') },
        {
          lazy: () => import('./Shell'),
          HydrateFallback: Loading,
          children: [
            {
              ErrorBoundary: RouteFailure,
              children: [
                { index: true, loader: () => redirect('/catalog') },
                { path: 'catalog', lazy: () => import('../pages/catalog/Catalog') },
                { path: 'catalog/template/:namespace/:name', lazy: () => import('../pages/catalog/TemplateForm') },
                { path: 'catalog/builder/:namespace/:name', lazy: () => import('../pages/catalog/BuilderForm') },
                { path: 'projects', lazy: () => import('../pages/Projects') },
                { path: 'command-line', lazy: () => import('../pages/CommandLine') },
                { path: 'project/:project', loader: ({ params }) => redirect(`/project/${params.project}/overview`) },
                { path: 'project/:project/overview', lazy: () => import('../pages/overview/Overview') },
                { path: 'project/:project/catalog', lazy: () => import('../pages/catalog/Catalog') },
                { path: 'project/:project/import', lazy: () => import('../pages/Import') },
                { path: 'project/:project/:resource', lazy: () => import('../pages/ResourceList') },
                { path: 'project/:project/:resource/:name', lazy: () => import('../pages/details/Details') },
                { path: 'project/:project/:resource/:name/:tab', lazy: () => import('../pages/details/Details') },
                { path: 'cluster/:resource', lazy: () => import('../pages/ResourceList') },
                { path: 'cluster/:resource/:name', lazy: () => import('../pages/details/Details') },
                { path: 'cluster/:resource/:name/:tab', lazy: () => import('../pages/details/Details') },
                { path: '*', lazy: () => import('../pages/NotFound') },
              ],
            },
          ],
        },
      ],
    },
  ],
  { basename: '/console' },
);
