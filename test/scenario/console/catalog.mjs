// A new user starts on the catalog page, and creates applications from a template and from source.
import { address, check, expect, logIn, open, shoot } from './browser.mjs';

const [project, repository, privateRepository] = process.argv.slice(2);

await open(async (page) => {
  await logIn(page, 'developer', '/console/');
  await page.getByRole('heading', { name: 'Catalog', level: 1 }).waitFor();
  await page.getByText('Static page', { exact: true }).waitFor();
  for (const title of ['Python', 'Static page']) {
    await page.locator('.pf-v6-c-card', { has: page.getByText(title, { exact: true }) }).first().locator('.console-logo path').waitFor();
  }
  await shoot(page, 'catalog');
  await page.getByRole('textbox', { name: 'Search the catalog' }).fill('no network');
  await page.getByText('Node.js').first().waitFor({ state: 'detached' });
  await page.getByLabel('Static page', { exact: true }).click();

  await page.getByRole('button', { name: 'Create project' }).click();
  await page.locator('#project-name').fill(project);
  await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
  await page.locator(`#field-project option:checked[value="${project}"]`).waitFor({ state: 'attached' });
  const create = page.getByRole('button', { name: 'Create', exact: true });
  await page.getByLabel('Greeting').fill('');
  await page.getByText('This value is required.').waitFor();
  expect(await create.isDisabled(), 'the form can be sent without a required value');
  await page.getByLabel('Greeting').fill('Hello from the catalog');
  await shoot(page, 'template');
  await create.click();
  await page.getByText('The objects have been created').waitFor();
  await page.getByRole('link', { name: 'Continue to the overview' }).click();
  const card = page.getByRole('region', { name: 'static-page' });
  await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
  await card.getByRole('link', { name: /^http:\/\/static-page/ }).waitFor();

  // If the user creates the same template again, the server rejects all objects.
  await page.goto(`${address}/console/catalog/template/openshift/static-page?project=${project}`);
  await create.click();
  await page.getByText(/ConfigMap static-page: .*already exists/).waitFor();

  await page.goto(`${address}/console/catalog`);
  await page.getByRole('heading', { name: 'Recently used' }).waitFor();
  await page.goto(`${address}/console/catalog/builder/openshift/python?project=${project}`);
  await page.locator('#builder-uri').fill('no address');
  await page.getByText('Enter an address that git accepts').waitFor();
  await page.locator('#builder-uri').fill('https://git.invalid/me/app.git');
  await page.locator('#builder-name').fill('from-source');
  const command = page.getByRole('textbox', { name: 'The same on the command line' });
  const expected = `oc new-app -n ${project} openshift/python:latest~https://git.invalid/me/app.git --name=from-source`;
  expect((await command.inputValue()) === expected, `the command is ${await command.inputValue()}`);
  await shoot(page, 'builder');
  await create.click();
  await page.getByText('The objects have been created').waitFor();
  await page.getByRole('link', { name: 'BuildConfig from-source' }).click();
  await page.getByRole('heading', { name: 'from-source', level: 1 }).waitFor();

  // The server reads a repository, and lists the builders that support its language. It does not
  // connect to its own network.
  await page.goto(`${address}/console/catalog?project=${project}`);
  await page.getByRole('button', { name: 'Build from Git' }).click();
  await page.locator('#field-project').selectOption(project);
  const find = page.getByRole('button', { name: 'Find a builder' });
  await page.locator('#builder-uri').fill('https://127.0.0.1/me/app.git');
  await find.click();
  await page.getByText(/"127\.0\.0\.1:443" is in a network that users must not reach/).waitFor();
  await page.locator('#builder-uri').fill(repository);
  await find.click();
  await page.getByRole('link', { name: 'Build with the Dockerfile' }).waitFor();
  await page.locator('#builder-dir').fill('web');
  await find.click();
  await page.getByText('The source looks like python.').waitFor();
  await check(page, 'git');
  await page.getByRole('link', { name: 'Build with Python' }).click();
  await page.locator('#builder-name').waitFor();
  expect((await page.locator('#builder-uri').inputValue()) === repository, 'the form has another repository');
  expect((await page.locator('#builder-dir').inputValue()) === 'web', 'the form has another directory');

  // A project's secret gives the server and the build access to a private repository.
  const status = await page.evaluate(async (target) => {
    const { csrf } = await (await fetch('/console/session')).json();
    const headers = { 'X-CSRF-Token': csrf, 'Content-Type': 'application/json' };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'git' }, type: 'kubernetes.io/basic-auth', stringData: { username: 'ann', password: 'opens3same' } };
    return (await fetch('/console/proxy' + target, { method: 'POST', headers, body: JSON.stringify(secret) })).status;
  }, `/api/v1/namespaces/${project}/secrets`);
  expect(status === 201, `the secret is not created: ${status}`);
  await page.goto(`${address}/console/catalog/git?project=${project}`);
  await page.locator('#builder-uri').fill(privateRepository);
  await find.click();
  await page.getByText('the repository does not exist, or is not public').waitFor();
  await page.locator('#builder-secret').selectOption('git');
  await find.click();
  await page.getByText('The source looks like python.').waitFor();
  await page.getByRole('link', { name: 'Build with Python' }).click();
  await page.locator('#builder-name').fill('from-private');
  await page.locator('#builder-secret option:checked[value="git"]').waitFor({ state: 'attached' });
  await create.click();
  await page.getByRole('link', { name: 'BuildConfig from-private' }).click();
  await page.getByRole('heading', { name: 'from-private', level: 1 }).waitFor();
  await page.goto(`${address}/console/project/${project}/buildconfigs.build.openshift.io/from-private/settings`);
  await page.getByLabel('Source secret').waitFor();
  expect((await page.getByLabel('Source secret').inputValue()) === 'git', 'the build has another secret');
  // The server does not connect to its own network on behalf of a user.
}, { expected: /status of 502/ });
