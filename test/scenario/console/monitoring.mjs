// A user monitors a project with the search, stateful sets, logs, events and notifications, and
// then switches to another project.
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project, other] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

/**
 * labels contains two labels of the test's objects. No status and no name contains their values.
 */
const labels = { service: 'flavour=vanilla', set: 'flavour=pistachio' };

await open(async (page) => {
  await logIn(page, 'developer', `/console/project/${project}/overview`);
  await page.getByRole('region', { name: 'front' }).getByRole('img', { name: '1 pod: 1 ready' }).waitFor();

  // The overview displays objects without a rollout, builds, and the problems that oc status
  // reports.
  const warnings = page.getByRole('list', { name: 'Needs attention' });
  await warnings.getByText(/stuck: It has no node: /).first().waitFor();
  await page.getByRole('region', { name: 'stuck', exact: true }).getByText('Pending').waitFor();
  await page.getByRole('list', { name: 'Builds' }).getByRole('listitem').filter({ hasText: 'site-1' }).getByText('Complete').waitFor();
  await warnings.getByRole('link', { name: 'shop' }).first().waitFor();
  await page.getByRole('button', { name: /^Show all \d+$/ }).click();
  await warnings.getByText(/front: It has no liveness probe/).first().waitFor();
  await shoot(page, 'warnings');

  // The user searches from any page.
  const box = page.getByRole('textbox', { name: `Search in project ${project}` });
  await box.fill(labels.service);
  await box.press('Enter');
  await page.getByRole('heading', { name: 'Search', level: 1 }).waitFor();
  await page.getByRole('region', { name: 'Services' }).getByRole('link', { name: 'front', exact: true }).waitFor();
  expect((await page.getByRole('region', { name: 'Stateful Sets' }).count()) === 0, 'the search finds an object with another label');
  await shoot(page, 'search');
  const field = page.getByRole('textbox', { name: 'Find by name, label or status' });
  await field.fill('no-such-thing-anywhere');
  await page.getByText('Nothing in this project or in the catalog matches').waitFor();
  await field.fill('static page');
  await page.getByRole('region', { name: 'Catalog' }).getByRole('link', { name: 'Static page' }).waitFor();
  await field.fill(labels.set);
  await page.getByRole('region', { name: 'Stateful Sets' }).getByRole('link', { name: 'db', exact: true }).click();

  // The search has found the stateful set.
  await page.getByRole('heading', { name: 'db', level: 1 }).waitFor();
  await page.getByText('Ready: 1/1').waitFor();
  await page.getByRole('link', { name: 'db-peers' }).waitFor();
  await page.getByText('RollingUpdate').waitFor();
  await shoot(page, 'statefulset');
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Scale', exact: true }).click();
  await page.getByRole('spinbutton', { name: 'Replicas' }).fill('2');
  await page.getByRole('dialog').getByRole('button', { name: 'Scale' }).click();
  await page.getByText('Ready: 2/2').waitFor();
  await page.goto(`${root}/statefulsets.apps/db/pods`);
  await page.getByRole('link', { name: 'db-1' }).waitFor();

  // The user changes the stateful set, and undoes the change.
  await page.goto(`${root}/statefulsets.apps/db/environment`);
  await page.getByRole('textbox', { name: 'Name 1' }).fill('FLAVOUR');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();
  await page.goto(`${root}/statefulsets.apps/db/history`);
  await page.getByRole('button', { name: 'Roll back to revision 1' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back', exact: true }).click();
  await page.getByRole('button', { name: 'Roll back to revision 2' }).waitFor();
  await page.goto(`${root}/statefulsets.apps/db/environment`);
  await page.getByRole('textbox', { name: 'Name 1' }).waitFor();
  expect((await page.getByRole('textbox', { name: 'Name 1' }).inputValue()) === '', 'the variable is still there');
  await page.goto(`${root}/overview`);
  await page.getByRole('region', { name: 'db', exact: true }).getByRole('img', { name: '2 pods: 2 ready' }).waitFor();
  await page.goto(`${root}/statefulsets.apps`);
  await page.getByRole('heading', { name: 'Stateful Sets', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'db', exact: true }).waitFor();

  // A single page displays the logs and events of all objects.
  await page.getByRole('link', { name: 'Monitoring' }).click();
  await page.getByRole('heading', { name: 'Monitoring', level: 1 }).waitFor();
  const logs = page.getByRole('region', { name: 'Logs' });
  const events = page.getByRole('region', { name: 'Events' });
  await logs.getByRole('button', { name: /^Pod db-0/ }).click();
  await page.getByRole('log', { name: 'Log of Pod db-0' }).getByText('db-0 is open').waitFor();
  await logs.getByRole('button', { name: /^DeploymentConfig shop/ }).click();
  await page.getByRole('log', { name: 'Log of DeploymentConfig shop' }).getByText('the shop is open').waitFor();
  await logs.getByRole('button', { name: /^Build site-1/ }).click();
  await page.getByRole('log', { name: 'Log of Build site-1' }).getByText(/Build complete/).waitFor();
  await events.getByRole('listitem').filter({ hasText: /Pod stuck FailedScheduling/ }).first().waitFor();
  await shoot(page, 'monitoring');
  await page.getByRole('button', { name: 'Builds', exact: true }).and(page.locator('[aria-pressed]')).click();
  await logs.getByRole('button', { name: /^Pod db-0/ }).waitFor({ state: 'detached' });
  await page.getByRole('textbox', { name: 'Filter logs and events' }).fill('stuck FailedScheduling');
  await events.getByRole('listitem').filter({ hasText: 'Pod db-0' }).first().waitFor({ state: 'detached' });
  await events.getByRole('link', { name: 'Pod stuck' }).first().waitFor();

  // The user reads the notifications.
  await page.goto(`${root}/quota`);
  await page.getByRole('button', { name: /^Notifications: [1-9]\d* unread$/ }).click();
  const drawer = page.getByRole('list', { name: 'Notifications' });
  const warning = drawer.getByRole('listitem').filter({ hasText: 'Pod stuck' }).first();
  const completed = drawer.getByRole('listitem').filter({ hasText: 'BuildCompleted' });
  await warning.getByText('FailedScheduling').waitFor();
  await completed.getByRole('link', { name: 'Build site-1' }).waitFor();
  await completed.getByText('unread').waitFor({ state: 'attached' });
  await shoot(page, 'notifications');
  await page.getByRole('button', { name: 'Mark all as read' }).click();
  await completed.getByText('unread').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Clear' }).click();
  await completed.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Close' }).click();
  await drawer.waitFor({ state: 'detached' });

  // The project selector offers the user's projects, and opens the same page in another project.
  await page.goto(`${root}/statefulsets.apps`);
  await page.getByRole('link', { name: 'db', exact: true }).waitFor();
  const find = page.getByRole('textbox', { name: 'Find a project' });
  await page.getByRole('button', { name: `Select a project: ${project}` }).click();
  await page.getByRole('menuitem', { name: project }).waitFor();
  await find.fill('openshift-infra');
  await page.getByText('No project matches').waitFor();
  await find.fill(other.slice(0, -1));
  await page.getByRole('menuitem', { name: project }).waitFor({ state: 'detached' });
  await shoot(page, 'project-selector');
  await page.getByRole('menuitem', { name: other }).click();
  await page.getByRole('heading', { name: 'No stateful sets' }).waitFor();
  expect(page.url() === `${address}/console/project/${other}/statefulsets.apps`, `the selector opens ${page.url()}`);
  await page.getByRole('button', { name: `Select a project: ${other}` }).click();
  await page.getByRole('menuitem', { name: 'All projects' }).click();
  await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Select a project: All projects' }).waitFor();
});
