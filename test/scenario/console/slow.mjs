// The network is slow. The console displays what it is waiting for, remains usable, and sends no
// request twice.
import { address, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

/** slow describes a bad mobile network: latency in milliseconds, rates in bytes per second. */
const slow = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 20_000 };

await open(async (page, context) => {
  await logIn(page, 'developer', '/console/projects');
  await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  await network.send('Network.setCacheDisabled', { cacheDisabled: true });
  await network.send('Network.emulateNetworkConditions', slow);

  // The page shows that it is loading, and its controls work.
  const started = Date.now();
  await page.goto(`${root}/overview`, { waitUntil: 'commit' });
  await page.getByRole('progressbar', { name: 'Loading' }).first().waitFor();
  const card = page.getByRole('region', { name: 'front' });
  await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
  expect(Date.now() - started > 2 * slow.latency, 'the network is not slow');
  await card.getByRole('button', { name: 'Add a pod to front' }).click();
  await card.getByRole('img', { name: '2 pods: 2 ready' }).waitFor();

  // A second click while a request is in progress must not create the object twice.
  await page.goto(`${root}/create/secrets`);
  await page.locator('#object-name').fill('once');
  await page.getByRole('textbox', { name: 'Key 1' }).fill('a');
  await page.getByRole('textbox', { name: 'Value 1' }).fill('b');
  const requests = [];
  page.on('request', (request) => request.method() === 'POST' && request.url().endsWith('/secrets') && requests.push(request.url()));
  await page.getByRole('button', { name: 'Create', exact: true }).dblclick();
  await page.getByRole('heading', { name: 'once', level: 1 }).waitFor();
  expect(requests.length === 1, `the form was sent ${requests.length} times`);
});
