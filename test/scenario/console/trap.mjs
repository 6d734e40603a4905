// An administrator opens objects that another user has prepared: a template that would take over
// the cluster, pods that would take over the node, and a build with forged stages. The
// administrator also opens a text that expands to a large object.
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [evil, project] = process.argv.slice(2);

await open(async (page) => {
  await logIn(page, 'developer', `/console/catalog/template/${evil}/trap?project=${project}`);
  await page.getByText(`This comes from the project ${evil}`).waitFor();
  await page.getByText('<img src=x onerror=alert(1)> [help](javascript:alert(1))').waitFor();
  await shoot(page, 'trap');
  await page.locator(`#field-project option:checked[value="${project}"]`).waitFor({ state: 'attached' });
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText('Create these objects with your permissions?').waitFor();
  await page.getByText(/^ClusterRoleBinding .* can grant permissions to users and programs$/).waitFor();
  await page.getByText(`ConfigMap planted is created in the project ${evil}`).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Create these objects with your permissions?').waitFor({ state: 'detached' });

  await page.goto(`${address}/console/project/${evil}/deployments.apps/trap`);
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Debug in a terminal' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Open a terminal' }).click();
  await dialog.getByText('The service account of these pods may not run them').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await page.goto(`${address}/console/project/${evil}/builds.build.openshift.io/forged`);
  const stages = page.getByRole('list', { name: 'Stages of the pipeline' });
  await stages.getByText('__proto__').first().waitFor();
  expect((await stages.getByRole('listitem').count()) === 2, 'the stages are not shown');

  await page.goto(`${address}/console/project/${project}/import`);
  const levels = [...'abcdefghi'].map((name, index, names) => `${name}: &${name} [${Array(9).fill(index === 0 ? 'x' : `*${names[index - 1]}`).join(', ')}]`);
  await page.getByRole('textbox', { name: 'YAML editor' }).fill(levels.join('\n'));
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('Excessive alias count').first().waitFor();
});
