// A project administrator grants a role to a user and to a service account, and revokes it.
import { address, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);

await open(async (page, context) => {
  await logIn(page, 'developer', `/console/project/${project}/overview`);
  // The overview displays the reason why a deployment's pods cannot be created.
  await page.getByRole('list', { name: 'Needs attention' }).getByText(/greedy: Pods cannot be created: .*maximum memory usage per Container is 1Gi/).waitFor();
  await page.getByRole('link', { name: 'Membership' }).click();
  await page.getByRole('tab', { name: /^Users \(1\)/ }).waitFor();
  await page.locator('#member-name').fill('ann');
  await page.locator('#member-role').selectOption({ label: 'edit' });
  await page.getByRole('button', { name: 'Add role' }).click();
  await page.getByRole('tab', { name: /^Users \(2\)/ }).waitFor();
  // Another window immediately displays this change, and later changes in the first window.
  const other = await context.newPage();
  await other.goto(`${address}/console/project/${project}/membership`);
  await other.getByRole('button', { name: 'Remove role edit from ann' }).waitFor();
  await page.getByRole('button', { name: 'Remove role edit from ann' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove role' }).click();
  await other.getByRole('tab', { name: /^Users \(1\)/ }).waitFor();
  await other.close();

  await page.getByRole('tab', { name: /^Service accounts/ }).click();
  await page.locator('#member-name').fill('robot');
  await page.locator('#member-role').selectOption({ label: 'view' });
  await page.getByRole('button', { name: 'Add role' }).click();
  await page.getByRole('cell', { name: `${project}/robot` }).or(page.getByRole('gridcell', { name: `${project}/robot` })).waitFor();

  // The project's quota is almost used up.
  await page.getByRole('link', { name: 'Quota and limits' }).click();
  await page.getByText('1 of 1', { exact: true }).waitFor();
  await page.getByRole('img', { name: '100% used: 100 % used' }).waitFor();
  await page.getByText('Limit reached: services').waitFor();
  await page.getByRole('table', { name: 'Limits of sizes' }).or(page.getByRole('grid', { name: 'Limits of sizes' })).getByText('64Mi').waitFor();
  await page.getByRole('heading', { name: 'Rejected requests' }).waitFor();
  await page.getByText(/maximum memory usage per Container is 1Gi, but limit is 2Gi/).first().waitFor();
  expect((await page.getByText('This project has no limits').count()) === 0, 'the page reports no limits');
});
