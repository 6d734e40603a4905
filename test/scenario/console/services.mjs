// A user
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page, context) => {
  await logIn(page, 'developer', `/console/project/${project}/catalog`);
  await page.getByRole('button', { name: 'Services', exact: true }).click();
  await page.getByText('Static page', { exact: true }).waitFor({ state: 'detached' });
  await shoot(page, 'catalog-services');
  await page.getByLabel('Database db').click();
  await page.getByRole('heading', { name: 'Database db', level: 1 }).waitFor();
  await page.locator(`#field-project option:checked[value="${project}"]`).waitFor({ state: 'attached' });
  await page.locator('#service-plan').selectOption({ label: 'small: A small one' });
  const create = page.getByRole('button', { name: 'Create', exact: true });
  expect(await create.isDisabled(), 'the form can be sent without a required parameter');
  await page.locator('#service-name').fill('shop-db');
  await page.getByLabel('Size in GiB').fill('many');
  await create.click();
  await page.getByText('many is not a number').waitFor();
  await page.getByLabel('Size in GiB').fill('5');
  await page.getByLabel('Create a binding').uncheck();
  await shoot(page, 'service');
  await create.click();
  await page.getByText('The objects have been created').waitFor();
  await page.getByRole('link', { name: 'ServiceInstance shop-db' }).click();
  await page.getByRole('link', { name: /^http:\/\/dashboard\.example\.com/ }).waitFor();
  await shoot(page, 'service-instance');
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Create binding' }).click();
  await page.getByText('The server accepted it.').waitFor();
  await page.goto(`${root}/servicebindings.servicecatalog.k8s.io/shop-db`);
  await page.getByRole('link', { name: 'shop-db', exact: true }).first().waitFor();
  await page.goto(`${root}/secrets`);
  await page.getByRole('link', { name: 'shop-db', exact: true }).click();
  await page.getByRole('button', { name: 'Reveal values' }).click();
  const uri = await page.getByRole('textbox', { name: 'uri' }).inputValue();
  expect(uri.startsWith('sql://db/'), `the credentials have the address ${uri}`);

  await page.goto(`${root}/buildconfigs.build.openshift.io/site`);
  await page.getByRole('link', { name: 'app:latest' }).waitFor();
  await page.getByRole('link', { name: 'site:latest' }).waitFor();
  const hook = page.getByRole('textbox', { name: 'Address of the webhook Generic' });
  expect((await hook.inputValue()).endsWith('/buildconfigs/site/webhooks/<secret>/generic'), `the address is ${await hook.inputValue()}`);
  await page.getByRole('button', { name: 'Reveal the secrets of the webhooks' }).click();
  await page.getByRole('button', { name: 'Hide the secrets of the webhooks' }).waitFor();
  await shoot(page, 'build-config');
  const response = await context.request.post(await hook.inputValue());
  expect(response.ok(), `the webhook responds ${response.status()} ${await response.text()}`);
  await page.goto(`${root}/builds.build.openshift.io`);
  await page.getByRole('link', { name: 'site-1', exact: true }).waitFor();

  await page.goto(`${root}/buildconfigs.build.openshift.io/site/settings`);
  await page.getByLabel('Git reference').fill('stable');
  await page.getByLabel('Incremental builds').check();
  await page.getByLabel('Start a build when the builder image changes').check();
  await shoot(page, 'build-settings');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();
  await page.reload();
  await page.getByLabel('Git reference').waitFor();
  expect((await page.getByLabel('Git reference').inputValue()) === 'stable' && (await page.getByLabel('Incremental builds').isChecked()), 'the settings are not saved');
});
