// Two users share a browser, one after the other. The second user sees no data of the first user.
import { address, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page, context) => {
  const logOut = async () => {
    await page.getByRole('button', { name: 'User menu' }).click();
    await page.getByRole('menuitem', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'You are logged out' }).waitFor();
  };
  const seen = (window) => window.evaluate(() => [document.body.innerText, document.title, location.href].join('\n'));

  // The first user opens a catalog item.
  await logIn(page, 'developer', '/console/catalog');
  await page.getByLabel('Static page', { exact: true }).first().click();
  await page.getByRole('heading', { name: 'Static page', level: 1 }).waitFor();
  await page.goto(`${address}/console/catalog`);
  await page.getByRole('heading', { name: 'Recently used' }).waitFor();
  await page.goto(`${root}/overview`);
  await page.getByRole('region', { name: 'front' }).waitFor();
  const other = await context.newPage();
  await other.goto(`${root}/services`);
  await other.getByRole('link', { name: 'front' }).waitFor();

  // Both windows open the page for logged-out users, and the browser's Back button shows no data.
  await logOut();
  await other.getByRole('heading', { name: 'You are logged out' }).waitFor();
  await page.goBack();
  await page.locator('input[name="password"]').waitFor();
  expect(!(await seen(page)).includes('httpd'), 'the button Back shows the page of the first user');
  await other.close();

  await logIn(page, 'ann', '/console/catalog');
  await page.getByRole('heading', { name: 'Catalog', level: 1 }).waitFor();
  await page.getByText('Static page', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'User menu' }).getByText('ann').waitFor();
  expect((await page.getByRole('heading', { name: 'Recently used' }).count()) === 0, 'the catalog shows items that the first user used');
  await page.goto(`${address}/console/projects`);
  await page.getByRole('heading', { name: 'You have no project yet' }).waitFor();
  const shown = await seen(page);
  expect(!shown.includes(project) && !/developer/.test(shown), `the second user sees ${shown}`);
  await page.goto(`${root}/services`);
  await page.getByText('You do not have permission to see this').waitFor();
  await logOut();
});
