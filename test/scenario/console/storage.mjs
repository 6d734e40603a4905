// An administrator finds out why a pod with a FlexVolume does not start, and why a claim waits.
import { address, check, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const failure = /the file server does not respond/;

await open(async (page) => {
  // The developer is allowed to view the project's objects. The pod's page displays the reason why
  // it waits.
  await logIn(page, 'developer', `/console/project/${project}/pods/reader`);
  await page.getByRole('heading', { name: 'Why this pod waits' }).waitFor();
  await page.getByText('A volume cannot be mounted').waitFor();
  await page.getByText(failure).first().waitFor();
  await check(page, 'pod-that-waits');

  // The overview displays the same reason.
  await page.goto(`${address}/console/project/${project}/overview`);
  await page.getByRole('list', { name: 'Needs attention' }).getByText(/reader: A volume cannot be mounted: .*the file server does not respond/).first().waitFor();

  // The claim's page displays the reason why the claim waits.
  await page.goto(`${address}/console/project/${project}/persistentvolumeclaims/lost`);
  await page.getByRole('heading', { name: 'Why this claim waits' }).waitFor();
  await page.getByText('A volume cannot be created').or(page.getByText('No volume matches')).first().waitFor();
  await page.getByText(/none-of-these/).first().waitFor();
  await check(page, 'claim-that-waits');

  await page.getByRole('link', { name: 'Slipway' }).click();
  await page.getByRole('link', { name: 'Cluster administration' }).click();
  await page.getByRole('link', { name: 'Storage drivers' }).click();
  const row = page.getByRole('row', { name: /example\.com\/broken/ });
  await row.getByText(/^mount: failure \(\d+\)$/).waitFor();
  await page.getByRole('grid', { name: 'Volumes that fail' }).or(page.getByRole('table', { name: 'Volumes that fail' })).getByText(failure).first().waitFor();
  await check(page, 'storage-drivers');
  await page.getByRole('link', { name: `PersistentVolumeClaim ${project}/lost` }).first().waitFor();
  await page.getByRole('link', { name: `Pod ${project}/reader` }).first().click();
  await page.getByRole('heading', { name: 'reader', level: 1 }).waitFor();
});
