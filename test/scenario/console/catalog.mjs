// A new user starts on the catalog page, and creates applications from a template and from source.
// The user sees the log of the build, the application's page, a shell in its pod, and the project's
// quota.
import { address, check, expect, logIn, open, shoot } from './browser.mjs';

const [project, repository, privateRepository] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

/** buildTimeout is the timeout for a build. It is long because other tests run at the same time. */
const buildTimeout = 180_000;

/** maxReloads is the maximum number of times that the page of a new route is loaded again. */
const maxReloads = 30;

/** isSoonVisible reports whether an element appears while a page is being displayed. */
const isSoonVisible = (element) => element.waitFor({ timeout: 2_000 }).then(() => true, () => false);

await open(async (page, context) => {
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
  const equivalent = await page.getByRole('textbox', { name: 'The same on the command line' }).inputValue();
  expect(equivalent === `oc new-app -n ${project} --template=openshift/static-page -p 'GREETING=Hello from the catalog'`, `the command is ${equivalent}`);
  await shoot(page, 'template');
  await create.click();
  await page.getByText('The objects have been created').waitFor();
  await page.getByRole('link', { name: 'Continue to the overview' }).click();
  const card = page.getByRole('region', { name: 'static-page' });
  await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
  await card.getByRole('link', { name: /^http:\/\/static-page/ }).waitFor();

  // A link can fill in the form. If the user creates the same template again, the server rejects
  // all objects.
  await page.goto(`${address}/console/create?template=static-page&templateParamsMap=${encodeURIComponent('{"GREETING":"Hello from a link"}')}`);
  await page.locator('#field-project').selectOption(project);
  expect((await page.getByLabel('Greeting').inputValue()) === 'Hello from a link', 'the form does not have the value of the link');
  await create.click();
  await page.getByText(/ConfigMap static-page: .*already exists/).waitFor();

  await page.goto(`${address}/console/catalog`);
  await page.getByRole('heading', { name: 'Recently used' }).waitFor();
  await page.goto(`${address}/console/catalog/builder/openshift/python?project=${project}`);
  await page.locator('#builder-uri').fill('no address');
  await page.getByText('Enter an address that git accepts').waitFor();

  // The server detects a repository's language, and lists the builders that support it. It does not
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
  const command = page.getByRole('textbox', { name: 'The same on the command line' });
  await page.locator('#builder-name').fill('from-source');
  const expected = `oc new-app -n ${project} openshift/python:latest~${repository} --name=from-source --context-dir=web`;
  expect((await command.inputValue()) === expected, `the command is ${await command.inputValue()}`);
  await shoot(page, 'builder');

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
  await page.getByRole('link', { name: 'Build with the Dockerfile' }).click();
  await page.locator('#builder-name').fill('site');
  await page.locator('#builder-secret option:checked[value="git"]').waitFor({ state: 'attached' });
  const docker = `oc new-app -n ${project} ${privateRepository} --strategy=docker --name=site --source-secret=git`;
  expect((await command.inputValue()) === docker, `the command is ${await command.inputValue()}`);
  await create.click();
  await page.getByRole('link', { name: 'BuildConfig site' }).click();

  // The user follows the build from its configuration, and opens the page of the application.
  await page.getByRole('heading', { name: 'site', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'site-1' }).click();
  await page.getByRole('link', { name: 'Logs', exact: true }).or(page.getByRole('tab', { name: 'Logs', exact: true })).click();
  await page.getByRole('log').getByText('Push successful').waitFor({ timeout: buildTimeout });
  await page.goto(`${root}/overview`);
  const site = page.getByRole('region', { name: 'site', exact: true });
  await site.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
  const opened = context.waitForEvent('page');
  await site.getByRole('link', { name: /^http:\/\/site/ }).click();
  const application = await opened;
  const heading = application.getByRole('heading', { name: 'Built from source' });
  for (let attempt = 1; !(await isSoonVisible(heading)); attempt++) {
    expect(attempt < maxReloads, 'the route does not lead to the application');
    await application.reload(); // routers receive a route's pods later than the overview does
  }

  // Another application runs the same image, from its image stream.
  await page.goto(`${address}/console/catalog/image?project=${project}`);
  await page.getByLabel('Location of the image').selectOption('stream');
  await page.getByLabel('Image stream tag').selectOption('site:latest');
  await page.getByText('The image was found. Its ports: 8080/TCP.').waitFor();
  await page.locator('#builder-name').fill('copy');
  await check(page, 'deploy-image-stream');
  await create.click();
  await page.getByRole('link', { name: 'Continue to the overview' }).click();
  await page.getByRole('region', { name: 'copy', exact: true }).getByRole('img', { name: '1 pod: 1 ready' }).waitFor();

  // A shell in the pod prints the same page.
  await page.goto(`${root}/deploymentconfigs.apps.openshift.io/site/pods`);
  await page.getByRole('link', { name: /^site-1-/ }).click();
  await page.getByRole('link', { name: 'Terminal', exact: true }).or(page.getByRole('tab', { name: 'Terminal', exact: true })).click();
  await page.locator('.xterm-helper-textarea').focus();
  await page.getByText(/[$#] $/).first().waitFor({ state: 'attached' });
  await page.keyboard.type('tr a-z A-Z < /www/index.html\n');
  await page.getByText('BUILT FROM SOURCE').first().waitFor({ state: 'attached' });

  await page.getByRole('link', { name: 'Quota and limits' }).click();
  await page.getByText(/^[1-9]\d* of 20$/).waitFor();
  // The browser reports these statuses because the server does not connect to its own network on
  // behalf of a user, and because a router responds with 503 until it has received a route's pods.
  // The argument makes all routes' host names resolve to the cluster.
}, { expected: /status of 50[23]/, args: [`--host-resolver-rules=MAP * ${new URL(address).hostname}`] });
