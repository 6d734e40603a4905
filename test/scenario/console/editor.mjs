// The YAML editor marks fields that the server would reject or ignore, and completes field names.
import { address, check, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page) => {
  const read = (path) =>
    page.evaluate(async (target) => {
      const { csrf } = await (await fetch('/console/session')).json();
      return (await fetch('/console/proxy' + target, { headers: { 'X-CSRF-Token': csrf } })).json();
    }, path);
  const save = page.getByRole('button', { name: 'Save', exact: true });

  await logIn(page, 'developer', `/console/project/${project}/services/front/yaml`);
  const spec = page.locator('.cm-line', { hasText: /^spec:$/ });
  await spec.click();
  await page.keyboard.press('End');
  await page.keyboard.insertText('\n  selectors: {a: b}\n  healthCheckNodePort: none');
  await page.locator('.cm-lintRange-error').nth(1).waitFor();
  await save.click();
  await page.getByText('The text has 2 problems').waitFor();
  const unknown = page.getByRole('button', { name: /^Line \d+: The field spec\.selectors does not exist\.$/ });
  await page.getByRole('button', { name: /^Line \d+: spec\.healthCheckNodePort must be a whole number\.$/ }).waitFor();
  // Undo the horizontal scrolling of the click on an annotation's long line.
  await page.locator('.cm-scroller').evaluate((element) => element.scrollTo({ left: 0 }));
  await check(page, 'yaml-problems');

  // A click on a problem moves the cursor to the problem's line. The editor offers the remaining
  // fields with their types.
  await unknown.click();
  await page.keyboard.press('Shift+End');
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Shift+End');
  await page.keyboard.press('Delete');
  await page.locator('.cm-lintRange-error').first().waitFor({ state: 'detached' });
  await page.keyboard.type('publishN');
  const option = page.getByRole('option', { name: /^publishNotReadyAddresses/ });
  await option.waitFor();
  expect((await page.getByRole('option', { name: /^ports/ }).count()) === 0, 'a field that exists is offered');
  await option.click(); // the editor ignores keys for a moment after it opens the list
  await page.keyboard.type('t');
  await page.getByRole('option', { name: 'true' }).click();
  await page.locator('.cm-line', { hasText: /^  publishNotReadyAddresses: true$/ }).waitFor();
  await save.click();
  await page.getByText('Saved.').waitFor();
  const service = await read(`/api/v1/namespaces/${project}/services/front`);
  expect(service.spec.publishNotReadyAddresses === true, JSON.stringify(service.spec));

  // OpenShift's kinds and custom resources also have schemas. The user can submit the text despite
  // problems.
  await page.goto(`${root}/import`);
  const config = 'apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {name: typed}\nspec:\n  replica: 0\n  replicas: 0\n  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}\n  selector: {app: a}';
  await page.getByRole('textbox', { name: 'YAML editor' }).fill(`${config}\n---\napiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: typed}\nspec: {source: [data]}\n`);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'Line 5: The field spec.replica does not exist.' }).waitFor();
  await page.getByRole('button', { name: 'Line 13: spec.source must be an object.' }).waitFor();
  await page.reload();
  await page.getByRole('textbox', { name: 'YAML editor' }).fill('apiVersion: v1\nkind: Service\nmetadata: {name: typed}\nspec:\n  ports:\n  - name: http\n');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'Line 6: The field spec.ports[0].port is missing.' }).waitFor();
  await page.reload();
  await page.getByRole('textbox', { name: 'YAML editor' }).fill('apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: typed}\nspec:\n  path: /a\n');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'Line 5: The field spec.to is missing.' }).waitFor();
  // Discard the marked text, because Chromium adds styles when marked text is replaced, and the
  // policy rejects styles.
  await page.reload();
  await page.getByRole('textbox', { name: 'YAML editor' }).fill(config);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText('The text has a problem').waitFor();
  await page.getByRole('button', { name: 'Send it anyway' }).click();
  await page.getByText('One object was created or changed.').waitFor();
});
