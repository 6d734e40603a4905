// A user with the view role views the layers of a tag's images. The console does not offer actions
// that the user is not allowed to perform.
import { address, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page) => {
  await logIn(page, 'developer', `/console/project/${project}/imagestreams.image.openshift.io/app`);
  await page.getByRole('button', { name: 'Layers of latest' }).click();
  const layers = page.getByRole('region', { name: /^Layers of sha256:/ });
  await layers.getByText('run --it').waitFor();
  await layers.getByText('2 layers, 3.0 MiB').waitFor();
  await layers.getByRole('button', { name: 'Close' }).click();
  await layers.waitFor({ state: 'detached' });

  // This image is an earlier image of the tag.
  await page.getByRole('button', { name: 'Earlier images of latest' }).click();
  await page.getByRole('button', { name: /^Layers of sha256:1111/ }).click();
  await page.getByRole('region', { name: /^Layers of sha256:1111/ }).getByText('2 layers, 3.0 MiB').waitFor();

  const absent = async (role, name) => expect((await page.getByRole(role, { name, exact: true }).count()) === 0, `the page ${page.url()} offers ${name}`);
  await page.goto(`${root}/pods`);
  await page.getByRole('link', { name: /^front-/ }).waitFor();
  await page.getByRole('link', { name: /^front-/ }).click();
  await page.getByRole('navigation', { name: /^front-/ }).getByText('Logs', { exact: true }).waitFor();
  await absent('link', 'Terminal');
  await absent('link', 'Files');
  await absent('tab', 'Terminal');
  await absent('button', 'Actions');
  // The Logs tab appears when the permissions have been loaded. Links within the console keep the
  // permissions.
  await page.goBack();
  await page.getByRole('link', { name: /^front-/ }).waitFor();
  await absent('button', 'Create Pod');
  await absent('link', 'Import YAML');
  await page.goto(`${address}/console/projects`);
  await page.getByRole('button', { name: `Actions for ${project}` }).click();
  await page.getByRole('menuitem', { name: 'You cannot change this project' }).waitFor();
  await absent('menuitem', 'Delete project');
});
