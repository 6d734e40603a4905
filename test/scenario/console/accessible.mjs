// Checks that axe reports no violation on any page or dialog in either theme, and that every page
// and dialog fits on a small screen. Each run checks one part: a project's pages, the cluster's
// pages, or the dialogs and menus.
import { address, check, expect, logIn, open, shoot, travel } from './browser.mjs';

const [part, project, node] = process.argv.slice(2);
const root = `/project/${project}`;
const front = `${root}/deployments.apps/front`;

/** publicPages maps the names of pages without navigation to their paths and headings. */
const publicPages = {
  'login-failed': ['/error?error=access_denied', 'The login is not complete'],
  'logged-out': ['/logged-out', 'You are logged out'],
  'signed-in': ['/signed-in', 'You are logged in. You can close this window.'],
};

/**
 * projectPages maps the names of a project's pages to their paths, their headings, and optionally a
 * text that appears after the page has been loaded.
 */
const projectPages = {
  overview: [`${root}/overview`, 'Overview', 'Add one with the action Edit health checks.'],
  'catalog-of-project': [`${root}/catalog`, 'Catalog'],
  import: [`${root}/import`, 'Import YAML or JSON'],
  search: [`${root}/search?filter=front`, 'Search'],
  'monitoring-list': [`${root}/monitoring`, 'Monitoring'],
  membership: [`${root}/membership`, 'Membership'],
  quota: [`${root}/quota`, 'Quota and limits'],
  'topology-page': [`${root}/topology`, 'Topology'],
  'network-page': [`${root}/network`, 'Network policies'],
  'who-can-in-project': [`${root}/who-can?verb=get&resource=pods`, 'Who can'],
  'other-in-project': [`${root}/other`, 'Other resources'],
  'create-secret': [`${root}/create/secrets`, 'Create Secret'],
  'create-config-map': [`${root}/create/configmaps`, 'Create Config Map'],
  'create-claim': [`${root}/create/persistentvolumeclaims`, 'Create Persistent Volume Claim'],
  'create-route': [`${root}/create/routes.route.openshift.io`, 'Create Route'],
  'create-autoscaler': [`${root}/create/horizontalpodautoscalers.autoscaling`, 'Create Horizontal Pod Autoscaler'],
  deployments: [`${root}/deployments.apps`, 'Deployments'],
  pods: [`${root}/pods`, 'Pods'],
  'no-jobs': [`${root}/jobs.batch`, 'Jobs'],
  deployment: [front, 'front'],
  'pods-of-deployment': [`${front}/pods`, 'front'],
  history: [`${front}/history`, 'front'],
  'logs-of-deployment': [`${front}/logs`, 'front'],
  environment: [`${front}/environment`, 'front'],
  yaml: [`${front}/yaml`, 'front'],
  'events-of-deployment': [`${front}/events`, 'front'],
  'deployment-config': [`${root}/deploymentconfigs.apps.openshift.io/shop`, 'shop'],
  'service-page': [`${root}/services/front`, 'front'],
  route: [`${root}/routes.route.openshift.io/shop`, 'shop'],
  'traffic-tab': [`${root}/routes.route.openshift.io/shop/traffic`, 'shop'],
  'build-config-page': [`${root}/buildconfigs.build.openshift.io/site`, 'site'],
  'build-settings-page': [`${root}/buildconfigs.build.openshift.io/site/settings`, 'site'],
  'pipeline-runs': [`${root}/buildconfigs.build.openshift.io/deliver`, 'deliver'],
  'image-stream': [`${root}/imagestreams.image.openshift.io/app`, 'app'],
  'config-map': [`${root}/configmaps/kube-root-ca.crt`, 'kube-root-ca.crt'],
  secret: [`${root}/secrets/hook`, 'hook'],
  claim: [`${root}/persistentvolumeclaims/data`, 'data'],
  'resource-quota': [`${root}/resourcequotas/services`, 'services'],
  'role-binding': [`${root}/rolebindings.rbac.authorization.k8s.io/admin`, 'admin'],
  'network-policy': [`${root}/networkpolicies.networking.k8s.io/clients`, 'clients'],
  'pod-page': [`${root}/pods/user`, 'user'],
  'log-of-pod': [`${root}/pods/user/logs`, 'user'],
  'terminal-of-pod': [`${root}/pods/user/terminal`, 'user'],
  'files-of-pod': [`${root}/pods/user/files`, 'user'],
  'events-of-pod': [`${root}/pods/user/events`, 'user'],
};

/** clusterPages maps the names of the other pages to their paths and headings. */
const clusterPages = {
  catalog: ['/catalog', 'Catalog'],
  template: ['/catalog/template/openshift/static-page', 'Static page'],
  builder: ['/catalog/builder/openshift/python', 'Python'],
  'git-page': [`/catalog/git?project=${project}`, 'Build from Git'],
  'deploy-image': [`/catalog/image?project=${project}`, 'Deploy an image'],
  dockerfile: [`/catalog/dockerfile?project=${project}`, 'Build a Dockerfile'],
  projects: ['/projects', 'Projects'],
  'command-line': ['/command-line', 'Command line tools'],
  about: ['/about', 'About'],
  nodes: ['/cluster/nodes', 'Nodes'],
  'node-page': [`/cluster/nodes/${node}`, node],
  'pods-of-node': [`/cluster/nodes/${node}/pods`, node],
  'storage-drivers-page': ['/cluster/storage-drivers', 'Storage drivers'],
  'hosts-page': ['/cluster/hosts', 'Hosts'],
  'routers-page': ['/cluster/routers', 'Routers'],
  'who-can-in-cluster': ['/cluster/who-can', 'Who can'],
  'image-usage-page': ['/cluster/image-usage', 'Image usage'],
  'audit-page': ['/cluster/audit', 'Audit log'],
  other: ['/cluster/other', 'Other resources'],
  'cluster-role': ['/cluster/clusterroles.rbac.authorization.k8s.io/view', 'view'],
  'user-page': ['/cluster/users.user.openshift.io/developer', 'developer'],
  constraint: ['/cluster/securitycontextconstraints.security.openshift.io/restricted', 'restricted'],
  'storage-class': ['/cluster/storageclasses.storage.k8s.io', 'Storage Classes'],
  'service-classes': ['/cluster/clusterserviceclasses.servicecatalog.k8s.io', 'Cluster Service Classes'],
};

/**
 * dialogs maps the names of dialogs to the paths of their pages and the menu items that open them.
 */
const dialogs = {
  scale: [front, 'Scale'],
  'health-dialog': [front, 'Edit health checks'],
  'resources-dialog': [front, 'Edit resource limits'],
  'lifecycle-dialog': [front, 'Edit lifecycle hooks'],
  'strategy-dialog': [front, 'Edit strategy'],
  attach: [front, 'Add storage or configuration'],
  debug: [front, 'Debug in a terminal'],
  delete: [front, 'Delete'],
  triggers: [`${root}/deploymentconfigs.apps.openshift.io/shop`, 'Edit triggers'],
  'edit-route': [`${root}/routes.route.openshift.io/shop`, 'Edit route'],
  'edit-autoscaler': [`${root}/horizontalpodautoscalers.autoscaling/front`, 'Edit autoscaler'],
  expand: [`${root}/persistentvolumeclaims/data`, 'Expand'],
  'add-to': [`${root}/secrets/hook`, 'Add to an application'],
  'idle-dialog': [`${root}/services/front`, 'Idle'],
  'drain-dialog': [`/cluster/nodes/${node}`, 'Drain'],
};

/**
 * menus maps the names of menus to the paths of their pages, their buttons, and one of their items.
 */
const menus = {
  'project-selector-menu': [`${root}/pods`, `Select a project: ${project}`, project],
  'help-menu': [`${root}/pods`, 'Help', 'About'],
  'user-menu': [`${root}/pods`, 'User menu: developer', 'Log out'],
  'actions-menu': [front, 'Actions', 'Edit health checks'],
  'row-actions': ['/projects', `Actions for ${project}`, 'Edit project'],
};

/**
 * overlays maps the names of other overlays to the path of a page, a function that opens the
 * overlay, and the overlay's element.
 */
const overlays = {
  'create-project': ['/projects', (page) => page.getByRole('button', { name: 'Create project' }).click(), (page) => page.getByRole('dialog')],
  'notification-drawer': [`${root}/pods`, (page) => page.getByRole('button', { name: /^Notifications/ }).click(), (page) => page.getByRole('button', { name: 'Close' })],
  'edit-project': [
    '/projects',
    async (page) => {
      await page.getByRole('button', { name: `Actions for ${project}` }).click();
      await page.getByRole('menuitem', { name: 'Edit project' }).click();
    },
    (page) => page.getByRole('dialog'),
  ],
};

/**
 * nowhere is the path of a missing page. The flow visits it between two pages, so that it does not
 * mistake the previous page for the next page.
 */
const nowhere = '/project/none/of/these/pages';

/** small is the size of the smallest window. */
const small = { width: 360, height: 740 };

/** visitTimeout is the maximum time until a page or a dialog is visible. */
const visitTimeout = 20_000;

/** parts maps the names of the parts to their flows. */
const parts = { project: showProject, cluster: showCluster, overlays: showOverlays };

async function showProject({ page, heading, visit }) {
  for (const [name, [path, title, late]] of Object.entries(projectPages)) {
    await visit(name, path, async () => {
      await heading(title).waitFor();
      if (late !== undefined) {
        await page.getByText(late).first().waitFor();
      }
    });
  }
}

async function showCluster({ page, heading, load, visit }) {
  for (const [name, [path, title]] of Object.entries(publicPages)) {
    await visit(name, path, () => heading(title).waitFor(), { isPublic: true });
  }
  await load(nowhere);
  await heading('This does not exist').waitFor();
  await check(page, 'missing');
  for (const [name, [path, title]] of Object.entries(clusterPages)) {
    await visit(name, path, () => heading(title).waitFor());
  }
}

async function showOverlays(flow) {
  const { page, visit } = flow;
  for (const [name, [path, item]] of Object.entries(dialogs)) {
    await visit(name, path, async () => {
      await page.getByRole('button', { name: 'Actions', exact: true }).click();
      await page.getByRole('menuitem', { name: item, exact: true }).click();
      await page.getByRole('dialog').waitFor();
    });
  }
  for (const [name, [path, button, item]] of Object.entries(menus)) {
    const show = async () => {
      await page.getByRole('button', { name: button, exact: true }).click();
      await page.getByRole('menuitem', { name: item, exact: true }).waitFor();
    };
    await visit(name, path, show, { close: () => page.keyboard.press('Escape') });
  }
  for (const [name, [path, show, shown]] of Object.entries(overlays)) {
    await visit(name, path, async () => {
      await show(page);
      await shown(page).first().waitFor();
    });
  }
  await openOnPhone(flow);
}

/** openOnPhone tests that on a small screen, elements that a button opens are within the window. */
async function openOnPhone({ page, heading, load, missing }) {
  await page.setViewportSize(small);
  await load(nowhere);
  await heading('This does not exist').waitFor();
  const isWithin = async (name, locator) => {
    const box = await locator.boundingBox();
    if (!box || box.x < 0 || box.x + box.width > small.width) {
      missing.push(`${name} is not within a window of ${small.width} pixels: ${JSON.stringify(box)}`);
    }
  };
  for (const [name, [path, button, item]] of Object.entries(menus)) {
    await travel(page, path);
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('menuitem', { name: item, exact: true }).waitFor();
    await isWithin(name, page.getByRole('menuitem', { name: item, exact: true }));
    await page.keyboard.press('Escape');
  }
  const [drawerPath, openDrawer] = overlays['notification-drawer'];
  await travel(page, drawerPath);
  await openDrawer(page);
  const drawer = page.getByRole('heading', { name: 'Notifications' });
  await drawer.waitFor();
  await isWithin('notification-drawer', drawer);
  await isWithin('the button that closes the notifications', page.getByRole('button', { name: 'Close', exact: true }));
  await shoot(page, 'notification-drawer-on-phone');
}

await open(async (page) => {
  page.setDefaultTimeout(visitTimeout);
  const heading = (name) => page.getByRole('heading', { name, level: 1, exact: true });
  const load = (path) => page.goto(`${address}/console${path}`);
  const missing = [];
  // If a page is not displayed, the flow continues, and reports all missing pages at the end.
  const visit = async (name, path, show, { isPublic, close } = {}) => {
    try {
      if (isPublic) {
        await load(path);
      } else {
        await travel(page, nowhere);
        await heading('This does not exist').waitFor();
        await travel(page, path);
      }
      await show();
      await check(page, name, close);
    } catch (error) {
      missing.push(`${name} at ${path}: ${error.message.split('\n').slice(0, 4).join(' ')}`);
      await load(nowhere);
    }
  };
  await logIn(page, 'developer', '/console/projects');
  await heading('Projects').waitFor();
  await parts[part]({ page, heading, load, visit, missing });
  expect(missing.length === 0, missing.join('\n'));
});
