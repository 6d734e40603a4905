// Two people work on the same objects at the same time, each in their own browser. Each person's
// browser displays the other person's changes. If both edit an object, the second person to save is
// shown the conflict and keeps their input. A person's logout does not end the other person's
// session.
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `/console/project/${project}`;
const conflict = 'The object has changed on the server since you started editing.';
const rejected = 'Your change was not saved, because the object has changed on the server.';

/** add opens a line below another line of the YAML editor, and types into it. */
async function add(page, below, text) {
  await page.locator('.cm-line', { hasText: below }).first().click();
  await page.keyboard.press('End');
  await page.keyboard.insertText(`\n${text}`);
  await page.locator('.cm-line', { hasText: text }).waitFor();
}

/** edit opens the dialog with a deployment's resource limits, and types a memory limit. */
async function edit(page, limit) {
  await page.goto(`${address}${root}/deployments.apps/front`);
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Edit resource limits' }).click();
  await page.getByRole('dialog').getByLabel('Memory limit').fill(limit);
}

/** withBoth runs a flow with the pages of the two people. */
const withBoth = (flow) => open((page) => open((other) => flow(page, other)));

await withBoth(async (page, other) => {
  const save = (window) => window.getByRole('button', { name: 'Save', exact: true });
  const line = (window, text) => window.locator('.cm-line', { hasText: text });
  await logIn(page, 'developer', `${root}/configmaps/menu/yaml`);
  await logIn(other, 'ann', `${root}/configmaps/menu/yaml`);
  await Promise.all([page, other].map((window) => line(window, 'soup: tomato').waitFor()));

  // Ann does not edit, so her editor displays the text that the developer saves.
  await add(page, 'soup: tomato', '  dessert: cake');
  await save(page).click();
  await page.getByText('Saved.').waitFor();
  await line(other, 'dessert: cake').waitFor();

  // Both people edit the text. The developer saves first.
  await add(other, 'soup: tomato', '  bread: rye');
  await add(page, 'soup: tomato', '  fish: trout');
  await save(page).click();
  await page.getByText('Saved.').waitFor();
  await other.getByRole('heading', { name: conflict }).waitFor();
  await other.locator('ins', { hasText: 'fish: trout' }).waitFor();
  await shoot(other, 'conflict');
  await save(other).click();
  await other.getByText(rejected).waitFor();
  await line(other, 'bread: rye').waitFor();
  expect((await line(other, 'fish: trout').count()) === 0, "the developer's change is in Ann's editor");
  expect((await line(page, 'bread: rye').count()) === 0, "Ann's change is stored");

  // Both people change the same fields in a dialog.
  await edit(page, '96Mi');
  await edit(other, '64Mi');
  await save(page.getByRole('dialog')).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const dialog = other.getByRole('dialog');
  await dialog.getByRole('heading', { name: conflict }).waitFor();
  await save(dialog).click();
  await dialog.getByText(rejected).waitFor();
  expect((await dialog.getByLabel('Memory limit').inputValue()) === '64Mi', 'the dialog has lost the limit that Ann typed');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  // The developer logs out. Ann continues.
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByRole('menuitem', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'You are logged out' }).waitFor();
  await edit(other, '80Mi');
  expect((await dialog.getByRole('heading', { name: conflict }).count()) === 0, 'a new dialog shows the conflict of the previous one');
  await save(dialog).click();
  await dialog.waitFor({ state: 'detached' });
});
