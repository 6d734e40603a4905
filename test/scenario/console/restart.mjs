// The master restarts while lists and a log are open and forms are half filled in. The lists and
// the log continue, and no input is lost.
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;
const text = '# typed before the restart\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}';

await open(async (page, context) => {
  const problem = page.getByText('The connection to the server is interrupted.');
  await logIn(page, 'developer', `/console/project/${project}/services`);
  await page.getByRole('link', { name: 'removed' }).waitFor();
  const other = async (path) => {
    const window = await context.newPage();
    await window.goto(root + path);
    await window.evaluate(() => (window.isFirst = true));
    return window;
  };
  const overview = await other('/overview');
  const card = overview.getByRole('region', { name: 'front' });
  await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
  const form = await other('/create/secrets');
  await form.locator('#object-name').fill('pull');
  await form.locator('#input-kind').selectOption('registry');
  await form.locator('#input-server').fill('registry.example.com');
  const dialog = await other('/deployments.apps/front');
  await dialog.getByRole('button', { name: 'Actions', exact: true }).click();
  await dialog.getByRole('menuitem', { name: 'Edit resource limits' }).click();
  await dialog.getByLabel('Memory limit').fill('64Mi');
  const editor = await other('/import');
  await editor.getByRole('textbox', { name: 'YAML editor' }).fill(text);
  const log = await other('/deployments.apps/front/logs');
  await log.getByRole('log').getByText('ready and listening').waitFor();
  await page.bringToFront();

  // The test kills the master when this object exists.
  const status = await page.evaluate(async (target) => {
    const { csrf } = await (await fetch('/console/session')).json();
    const headers = { 'X-CSRF-Token': csrf, 'Content-Type': 'application/json' };
    return (await fetch('/console/proxy' + target, { method: 'POST', headers, body: '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kill"}}' })).status;
  }, `/api/v1/namespaces/${project}/configmaps`);
  expect(status === 201, `the response is ${status}`);
  await problem.waitFor();
  await shoot(page, 'interrupted');

  // The console repeats a request that received no response, even after the master is available
  // again.
  await form.locator('#input-username').fill('ann');
  await form.locator('#input-password').fill('secret');

  // The lists contain the changes that were made during the interruption.
  await page.getByRole('link', { name: 'added' }).waitFor();
  await page.getByRole('link', { name: 'removed' }).waitFor({ state: 'detached' });
  await problem.waitFor({ state: 'detached' });
  await log.bringToFront();
  await log.getByRole('log').getByText('after the restart').waitFor();
  expect((await log.getByRole('log').getByText('ready and listening').count()) === 1, 'the log repeats a line');
  await overview.bringToFront();
  await card.getByRole('button', { name: 'Add a pod to front' }).click();
  await card.getByRole('img', { name: '2 pods: 2 ready' }).waitFor();

  // The form keeps the typed text, and can submit it.
  await form.bringToFront();
  expect((await form.locator('#input-server').inputValue()) === 'registry.example.com', 'the form has lost a field');
  await form.getByRole('button', { name: 'Create', exact: true }).click();
  await form.getByRole('heading', { name: 'pull', level: 1 }).waitFor();
  await dialog.bringToFront();
  expect((await dialog.getByLabel('Memory limit').inputValue()) === '64Mi', 'the dialog has lost a field');
  await dialog.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await dialog.getByRole('dialog').waitFor({ state: 'detached' });
  await editor.bringToFront();
  await editor.getByText('# typed before the restart').waitFor();
  await editor.getByRole('button', { name: 'Create', exact: true }).click();
  await editor.getByText('One object was created or changed.').waitFor();
  for (const window of [log, overview, form, dialog, editor]) {
    expect(await window.evaluate(() => window.isFirst), `${window.url()} was loaded again`);
  }
  // Ignore these errors, because requests fail while the master is unavailable.
}, { expected: /net::ERR_(CONNECTION_(REFUSED|RESET|CLOSED)|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED|HTTP2)|status of 50[0-9]/ });
