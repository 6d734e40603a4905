// The session ends while the user types. After a login in another window, the page continues to
// work.
import { address, check, logIn, open, expect } from './browser.mjs';

const [project] = process.argv.slice(2);

await open(async (page, context) => {
  await logIn(page, 'developer', `/console/project/${project}/import`);
  const editor = page.getByRole('textbox', { name: 'YAML editor' });
  await editor.fill('# typed before the session ended\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}');
  // Another window of the same browser logs out, which deletes the token.
  const csrf = await page.evaluate(async () => (await (await fetch('/console/session')).json()).csrf);
  const cookies = await context.cookies();
  const status = await page.evaluate(async (value) => (await fetch('/console/logout', { method: 'POST', headers: { 'X-CSRF-Token': value } })).status, csrf);
  expect(status === 204, `the logout returns ${status}`);
  await context.addCookies(cookies.filter((cookie) => cookie.name === '__Host-openshift-console'));
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByRole('dialog').getByText('Your session has ended').waitFor();
  await check(page, 'session-ended');
  const opened = context.waitForEvent('page');
  await page.getByRole('link', { name: 'Log in' }).click();
  const window = await opened;
  await window.locator('input[name="username"]').fill('developer');
  await window.locator('input[name="password"]').fill(process.env.CONSOLE_PASSWORD);
  await window.locator('button[type="submit"], input[type="submit"]').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('# typed before the session ended').waitFor();
  expect(page.url() === `${address}/console/project/${project}/import`, `the page is ${page.url()}`);
});
