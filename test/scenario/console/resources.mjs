// A user finds, views and edits the objects of a project.
import { readFileSync } from 'node:fs';
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page) => {
  await logIn(page, 'developer', `/console/project/${project}/overview`);
  await page.getByRole('region', { name: 'front' }).getByRole('img', { name: '1 pod: 1 ready' }).waitFor();

  // The user opens a pod through the navigation. The URL contains the filter.
  await page.getByRole('button', { name: 'Applications' }).click();
  await page.getByRole('link', { name: 'Pods', exact: true }).click();
  const filter = page.getByRole('textbox', { name: 'Filter Pods' });
  await page.getByRole('link', { name: /^front-/ }).waitFor();
  await shoot(page, 'pods');
  await filter.fill('nothing-like-this');
  await page.getByText('Nothing matches the filter').waitFor();
  await filter.fill('front Running');
  await page.waitForURL(/[?&]filter=front(\+|%20)Running/);
  await page.reload();
  await page.getByRole('link', { name: /^front-/ }).waitFor();
  expect((await filter.inputValue()) === 'front Running', 'a reload loses the filter');
  await page.getByRole('link', { name: /^front-/ }).click();
  await page.getByText('Security context constraints', { exact: true }).waitFor();
  await page.goBack();
  await page.getByRole('link', { name: /^front-/ }).waitFor();
  expect((await filter.inputValue()) === 'front Running', 'the Back button loses the filter');
  await page.goForward();
  await page.getByText('Security context constraints', { exact: true }).waitFor();
  await page.getByRole('gridcell', { name: 'running' }).or(page.getByRole('cell', { name: 'running' })).waitFor();

  await page.getByRole('tab', { name: 'Logs' }).or(page.getByRole('link', { name: 'Logs' })).click();
  const log = page.getByRole('log', { name: 'Log' });
  await log.getByText('ready and listening').waitFor();
  expect((await log.getByText('<img src=x').count()) === 1, 'the log does not show markup as text');
  expect(!(await log.textContent()).includes('\x1b'), 'the log shows escape sequences');
  await page.getByRole('textbox', { name: 'Search in the log' }).fill('listening');
  await log.getByText('<img src=x').waitFor({ state: 'detached' });
  await shoot(page, 'logs');
  await page.getByRole('checkbox', { name: 'Wrap lines' }).check();
  await page.locator('.console-log.wrap').waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  const saved = readFileSync(await (await download).path(), 'utf8');
  expect(saved.includes('ready and listening'), `the downloaded log is ${saved}`);
  await page.getByRole('checkbox', { name: 'Show times' }).check();
  await log.getByText(/^\d{4}-\d\d-\d\dT\S+ ready and listening/).waitFor();
  await page.getByRole('combobox', { name: 'Lines of' }).selectOption({ label: 'Lines of the last hour' });
  await log.getByText(/T\S+ ready and listening/).waitFor();

  await page.getByRole('tab', { name: 'Terminal' }).or(page.getByRole('link', { name: 'Terminal' })).click();
  await page.locator('.xterm-helper-textarea').focus();
  await page.getByText(/[$#] $/).first().waitFor({ state: 'attached' });
  await page.keyboard.type('echo $((6*7))-answer\n');
  await page.getByText('42-answer').first().waitFor({ state: 'attached' });
  await shoot(page, 'terminal');
  await page.keyboard.type('exit\n');
  await page.getByText('The session has ended.').waitFor();

  await page.getByRole('tab', { name: 'Events' }).or(page.getByRole('link', { name: 'Events', exact: true })).click();
  await page.getByText('Scheduled').first().waitFor();
  await shoot(page, 'events');

  // Edit and save the YAML, although the controller might change the object's status at the same
  // time.
  await page.goto(`${root}/deployments.apps/front/yaml`);
  await page.locator('.cm-line', { hasText: /^  name: front$/ }).first().click();
  await page.keyboard.press('End');
  await page.keyboard.insertText('\n  labels: {typed: here}');
  await page.locator('.cm-line', { hasText: /^  labels: \{typed: here\}$/ }).waitFor();
  await shoot(page, 'yaml');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();

  await page.goto(`${root}/deployments.apps/front`);
  await page.getByText('typed=here').waitFor();
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Scale', exact: true }).click();
  await page.getByRole('spinbutton', { name: 'Replicas' }).fill('2');
  await page.getByRole('dialog').getByRole('button', { name: 'Scale' }).click();
  await page.getByText('Ready: 2/2').waitFor();
  await shoot(page, 'deployment');
  await page.goto(`${root}/deployments.apps/front/pods`);
  await page.getByRole('img', { name: '2 pods: 2 ready' }).waitFor();

  // The browser keeps the theme.
  await page.getByRole('button', { name: 'Theme' }).click();
  await page.getByRole('menuitem', { name: 'Dark theme' }).click();
  await page.locator('html.pf-v6-theme-dark').waitFor();
  await page.reload();
  await page.locator('html.pf-v6-theme-dark').waitFor();

  // If the user is not allowed to view a page, the page lists the users who can grant access.
  await page.goto(`${address}/console/project/kube-system/secrets`);
  await page.getByText('You do not have permission to see this').waitFor();
  await page.getByText('An administrator of project kube-system can grant it to you.').waitFor();
  await page.goto(`${root}/nothings/x`);
  await page.getByText('This does not exist').waitFor();

  await page.goto(`${root}/services/front`);
  await page.getByText(`front.${project}.svc`).waitFor();
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'No services' }).waitFor();
});
