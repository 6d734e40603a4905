// A user views the connections between an application's objects, and changes the objects.
import { readFileSync } from 'node:fs';
import { address, check, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;
const tab = (page, name) => page.getByRole('tab', { name }).or(page.getByRole('link', { name, exact: true }));

await open(async (page) => {
  await logIn(page, 'developer', `/console/project/${project}/topology`);
  const service = page.getByRole('link', { name: /^Service front\. Uses Deployment front\. Used by Route shop\.$/ });
  await service.waitFor();
  await page.getByRole('link', { name: /^Deployment front 1\/1 ready/ }).waitFor();
  await page.getByRole('link', { name: /^Stateful Set database 1\/1 ready.* Used by Service database\.$/ }).waitFor();
  await page.getByRole('link', { name: /^Image Stream app\. Used by Build Config site/ }).waitFor();
  await check(page, 'topology');
  const drawing = await page.getByRole('region', { name: 'Topology' }).evaluate(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth]);
  expect(drawing[0] <= drawing[1], `the graph is ${drawing[0]} pixels wide in ${drawing[1]} pixels`);
  await service.focus();
  await page.keyboard.press('Enter');
  await page.getByText(`front.${project}.svc`).waitFor();

  await page.goto(`${root}/network`);
  await page.getByRole('link', { name: /^Deployment front.*Can be reached by Pods with role=client \(8080\/TCP\)/ }).waitFor();
  await check(page, 'network');

  // The Jenkins plugin reports this pipeline's stages.
  await page.goto(`${root}/builds.build.openshift.io/deliver-1`);
  const stages = page.getByRole('list', { name: 'Stages of the pipeline' });
  await stages.getByRole('listitem').filter({ hasText: 'Compile' }).getByText('1m 12s').waitFor();
  await stages.getByRole('listitem').filter({ hasText: 'Release' }).getByText('Waits for input').waitFor();
  await page.getByRole('heading', { name: /Release to the world\?/ }).waitFor();
  await check(page, 'pipeline');
  await page.getByRole('button', { name: 'Go ahead' }).click();
  await page.getByText('The decision is recorded. The pipeline continues soon.').waitFor();

  // The user moves half of a route's requests to another service.
  await page.goto(`${root}/routes.route.openshift.io/shop`);
  await page.getByRole('heading', { name: 'Decisions of the routers' }).waitFor();
  await page.getByRole('row', { name: /shop.* Yes / }).waitFor();
  await tab(page, 'Traffic').click();
  await page.getByLabel('Add a service').selectOption('preview');
  const slider = page.getByRole('slider', { name: 'Share of preview' });
  await slider.focus();
  for (let step = 0; step < 100; step++) {
    await page.keyboard.press('ArrowRight');
  }
  await page.getByText('preview: 50%').waitFor();
  await check(page, 'traffic');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();

  // The user copies a file to a container and back.
  await page.goto(`${root}/pods`);
  await page.getByRole('link', { name: /^front-/ }).click();
  await page.getByRole('heading', { name: 'Reason for its security context constraints' }).waitFor();
  await page.getByText('For the service account default alone, a review of the pod chooses restricted.').waitFor();
  await page.getByRole('row', { name: /Pods with role=client 8080\/TCP/ }).waitFor();
  await check(page, 'pod');
  await tab(page, 'Files').click();
  await page.locator('input[type="file"]').setInputFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('from the browser\n') });
  await page.getByText('/tmp/note.txt was written.').waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download note.txt' }).click();
  expect(readFileSync(await (await download).path(), 'utf8') === 'from the browser\n', 'the file has other content');
  await check(page, 'files');

  // A dry run shows the changes.
  await page.goto(`${root}/import`);
  await page.getByRole('textbox', { name: 'YAML editor' }).fill(`apiVersion: v1\nkind: Service\nmetadata: {name: preview, labels: {tier: web}}\nspec: {selector: {app: front}, ports: [{port: 8080}]}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: fresh}\n`);
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByRole('group', { name: 'Service preview will change' }).getByText('+     tier: web').waitFor();
  await page.getByText('ConfigMap fresh will be created').waitFor();
  await check(page, 'import-check');

  await page.goto(`${root}/deployments.apps/front`);
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Debug in a terminal' }).click();
  await page.getByRole('button', { name: 'Open a terminal' }).click();
  await page.locator('.xterm-helper-textarea').focus();
  await page.getByText(/[$#] $/).first().waitFor({ state: 'attached' });
  await page.keyboard.type('echo $((6*7))-debugged\n');
  await page.getByText('42-debugged').first().waitFor({ state: 'attached' });

  await page.goto(`${root}/services/front`);
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Idle' }).click();
  await page.getByRole('dialog').getByText('Deployment front').waitFor();
  await shoot(page, 'idle');
  await page.getByRole('dialog').getByRole('button', { name: 'Idle', exact: true }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.goto(`${root}/deployments.apps/front`);
  await page.getByText('Ready: 0/0').waitFor();
});
