// A user changes probes, resources, lifecycle hooks and strategies in forms.
import { address, check, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page) => {
  const dialog = page.getByRole('dialog');
  const save = dialog.getByRole('button', { name: 'Save' });
  const part = (name) => dialog.getByRole('group', { name, exact: true });
  const edit = async (action) => {
    await page.getByRole('button', { name: 'Actions', exact: true }).click();
    await page.getByRole('menuitem', { name: action }).click();
    await dialog.getByRole('heading', { name: action }).waitFor();
    expect(await save.isDisabled(), `${action}: nothing is changed, but can be saved`);
  };
  const stored = () => dialog.waitFor({ state: 'detached' });

  await logIn(page, 'developer', `/console/project/${project}/deployments.apps/front`);
  await page.getByRole('heading', { name: 'front', level: 1 }).waitFor();

  // The user adds an HTTP probe with only the keyboard.
  await page.getByRole('button', { name: 'Actions', exact: true }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('menuitem', { name: 'Edit health checks' }).focus();
  await page.keyboard.press('Enter');
  const readiness = part('Readiness probe of web');
  await readiness.getByLabel('Type').selectOption('httpGet');
  await readiness.getByLabel('Port').fill('no port!');
  await readiness.getByText('Write a number from 1 to 65535').waitFor();
  expect(await save.isDisabled(), 'an invalid port can be saved');
  await readiness.getByLabel('Port').fill('8080');
  await readiness.getByLabel('Path').fill('/etc/hostname');
  await readiness.getByLabel('Period (seconds)').fill('2');
  const liveness = part('Liveness probe of web');
  await liveness.getByLabel('Type').selectOption('tcpSocket');
  await liveness.getByLabel('Port').fill('8080');
  const startup = part('Startup probe of web');
  await startup.getByLabel('Type').selectOption('exec');
  await startup.getByRole('button', { name: 'Add a row' }).click();
  await startup.getByLabel('Command, row 1').fill('test');
  await startup.getByLabel('Command, row 2').fill('-d');
  await startup.getByRole('button', { name: 'Add a row' }).click();
  await startup.getByLabel('Command, row 3').fill('/');
  await check(page, 'health');
  await startup.getByLabel('Period (seconds)').fill('1');
  await page.keyboard.press('Enter');
  await stored();

  await edit('Edit resource limits');
  const resources = part('Resources of web');
  await resources.getByLabel('Memory limit').fill('64Mi');
  await resources.getByLabel('Memory request').fill('128Mi');
  await resources.getByText('The request is larger than the limit.').waitFor();
  expect(await save.isDisabled(), 'a request over the limit can be saved');
  await resources.getByLabel('Memory request').fill('32Mi');
  await resources.getByLabel('CPU request').fill('10m');
  await check(page, 'resource-limits');
  await save.click();
  await stored();

  await edit('Edit lifecycle hooks');
  const start = part('After web starts');
  await start.getByLabel('Type').selectOption('exec');
  await start.getByLabel('Command, row 1').fill('true');
  await check(page, 'lifecycle');
  await save.click();
  await stored();

  await edit('Edit strategy');
  await dialog.getByLabel('Maximum number of unavailable pods').fill('0');
  await dialog.getByLabel('Maximum number of additional pods').fill('0');
  await dialog.getByText('One of the two maximums must be more than 0.').first().waitFor();
  await dialog.getByLabel('Maximum number of additional pods').fill('2');
  await save.click();
  await stored();

  // The user adds hooks to a deployment configuration. The first hook runs before the rollout.
  await page.goto(`${root}/deploymentconfigs.apps.openshift.io/shop`);
  await edit('Edit strategy');
  await part('Strategy').getByLabel('Type').selectOption('Recreate');
  const pre = part('Before the rollout');
  await pre.getByLabel('Hook').selectOption('execNewPod');
  await pre.getByLabel('If the hook fails').selectOption('Abort');
  await pre.getByLabel('Command, row 1').fill('echo');
  await pre.getByRole('button', { name: 'Add a row' }).first().click();
  await pre.getByLabel('Command, row 2').fill('the hook ran');
  const post = part('After the rollout');
  await post.getByLabel('Hook').selectOption('tagImages');
  await post.getByLabel('Image stream tag').fill('released');
  await post.getByText('Write a stream and a tag').waitFor();
  await post.getByLabel('Image stream tag').fill('released:now');
  await check(page, 'strategy');
  await save.click();
  await stored();
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Deploy', exact: true }).click();
  await page.getByText('The server accepted the request.').waitFor();

  // The user adds the service's certificates to the application as files.
  await page.goto(`${root}/deployments.apps/front`);
  await edit('Add storage or configuration');
  await dialog.getByLabel('Source').selectOption('configMap');
  await dialog.getByLabel('Config map').selectOption('kube-root-ca.crt');
  await dialog.getByLabel('Directory').fill('/certificates');
  await save.click();
  await stored();

  // Escape closes a dialog without a change.
  await edit('Edit health checks');
  await page.keyboard.press('Escape');
  await stored();

  // The user restores a snapshot of a claim to a new claim.
  await page.goto(`${root}/persistentvolumeclaims/data`);
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Create snapshot' }).click();
  await page.getByRole('heading', { name: 'Create Volume Snapshot', level: 1 }).waitFor();
  await page.locator('#input-claim option:checked[value="data"]').waitFor({ state: 'attached' });
  await page.locator('#object-name').fill('kept');
  await check(page, 'create-snapshot');
  expect((await page.getByText('The choices cannot be listed').count()) === 0, 'the form reports that the user may not list snapshot classes');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'kept', level: 1 }).waitFor();
  await page.locator('dl > div', { hasText: /^Ready to useYes$/ }).waitFor();
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Restore as a new claim' }).click();
  await page.locator('#input-snapshot option:checked[value="kept"]').waitFor({ state: 'attached' });
  await page.locator('#object-name').fill('restored');
  await page.locator('#input-size').fill('64Mi');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'restored', level: 1 }).waitFor();

  // The user expands a claim.
  await page.goto(`${root}/persistentvolumeclaims/data`);
  await edit('Expand');
  await dialog.getByLabel('New size').fill('96Mi');
  await save.click();
  await stored();
  await page.locator('dl > div', { hasText: /^Requested96Mi$/ }).waitFor();
});
