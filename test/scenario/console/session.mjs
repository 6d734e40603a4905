// The session ends while the user types. After a login in another window, the page continues to
// work. If another user logs in, the page is reloaded.
import { address, check, logIn, open, expect } from './browser.mjs';

const [project] = process.argv.slice(2);
const typed = '# typed before the session ended';

await open(async (page, context) => {
  await logIn(page, 'developer', `/console/project/${project}/import`);
  const editor = page.getByRole('textbox', { name: 'YAML editor' });
  const prompt = page.getByRole('dialog').getByText('Your session has ended');

  /** end deletes the token in another window of the same browser. The page keeps the session's cookie. */
  const end = async () => {
    const csrf = await page.evaluate(async () => (await (await fetch('/console/session')).json()).csrf);
    const cookies = await context.cookies();
    const status = await page.evaluate(async (value) => (await fetch('/console/logout', { method: 'POST', headers: { 'X-CSRF-Token': value } })).status, csrf);
    expect(status === 204, `the logout returns ${status}`);
    await context.addCookies(cookies.filter((cookie) => cookie.name === '__Host-openshift-console'));
    // Ignore a failed click, because the page might detect the end of the session first, and then
    // the prompt hides the button.
    await page.getByRole('button', { name: 'Check' }).click({ timeout: 5_000 }).catch(() => undefined);
    await prompt.waitFor();
  };
  const logInAgain = async (user, password) => {
    const opened = context.waitForEvent('page');
    await page.getByRole('link', { name: 'Log in' }).click();
    const window = await opened;
    await window.locator('input[name="username"]').fill(user);
    await window.locator('input[name="password"]').fill(password);
    await window.locator('button[type="submit"], input[type="submit"]').click();
    await prompt.waitFor({ state: 'detached' });
  };

  await editor.fill(`${typed}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: typed}`);
  await end();
  await check(page, 'session-ended');
  await logInAgain('developer', process.env.CONSOLE_PASSWORD);
  await page.getByText(typed).waitFor();
  expect(page.url() === `${address}/console/project/${project}/import`, `the page is ${page.url()}`);

  await end();
  await logInAgain('ann', 'any');
  await page.getByRole('button', { name: 'User menu' }).getByText('ann').waitFor();
  expect((await page.getByText(typed).count()) === 0, 'the page shows what the first user has typed');
});
