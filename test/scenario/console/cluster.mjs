// An administrator manages the cluster: nodes, hosts, permissions, routers, images, users and the
// audit log.
import { address, check, expect, logIn, open, shoot } from './browser.mjs';

const [project, node] = process.argv.slice(2);
const cluster = `${address}/console/cluster`;

await open(async (page, context) => {
  await logIn(page, 'developer', '/console/cluster/nodes');
  await page.getByRole('link', { name: node, exact: true }).waitFor();
  expect((await page.getByRole('button', { name: /^Create/ }).count()) === 0, 'the page offers to create a node');
  await page.getByRole('link', { name: node, exact: true }).click();
  await page.getByRole('heading', { name: node, level: 1 }).waitFor();
  const cockpit = page.getByRole('link', { name: 'Open the web interface of the host' });
  expect((await cockpit.getAttribute('href')) === 'https://node.example.com:9090/', 'the node has no link to Cockpit');
  await page.getByRole('row', { name: /^cpu .*[^-]$/ }).waitFor(); // the last cell is the usage
  await page.getByRole('heading', { name: 'Conditions' }).waitFor();
  await check(page, 'node');
  await page.getByRole('tab', { name: 'Pods' }).or(page.getByRole('link', { name: 'Pods', exact: true })).click();
  await page.getByRole('link', { name: 'bare' }).waitFor();

  // A drain waits for a disruption budget, and keeps the pods of daemon sets.
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Drain' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/daemon sets and static pods/).waitFor();
  const start = dialog.getByRole('button', { name: 'Drain', exact: true });
  expect(await start.isDisabled(), 'a drain requests no confirmation');
  await dialog.getByRole('checkbox', { name: /local data.*bare/ }).check();
  await dialog.getByRole('checkbox', { name: /without a controller.*bare/ }).check();
  await start.click();
  await dialog.getByText(/A disruption budget allows no eviction now/).waitFor();
  await shoot(page, 'drain');
  const other = await context.newPage();
  await other.goto(`${address}/console/project/${project}/poddisruptionbudgets.policy/front`);
  await other.getByRole('button', { name: 'Actions' }).click();
  await other.getByRole('menuitem', { name: 'Delete' }).click();
  await other.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await other.getByRole('heading', { name: /No disruption budgets/ }).waitFor();
  await other.goto(`${address}/console/project/${project}/pods`);
  await dialog.getByText('The node is drained.').waitFor();
  await other.getByRole('row', { name: /^agent-.*Running/ }).waitFor();
  await other.close();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Mark schedulable' }).click();
  await page.getByText('The server accepted the request.').waitFor();

  await page.getByRole('link', { name: 'Hosts', exact: true }).click();
  await page.getByRole('heading', { name: 'Hosts', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Certificates' }).click();
  await page.getByRole('row', { name: /ca\.crt 20\d\d-\d\d-\d\d/ }).first().waitFor();
  await page.getByRole('button', { name: /components/i }).first().click();
  await page.getByRole('row', { name: /^kubelet node ready/ }).waitFor();
  await page.getByRole('row', { name: /voter Leader 0 / }).waitFor();
  await check(page, 'hosts');

  await page.getByRole('link', { name: 'Who can', exact: true }).click();
  await page.getByLabel('Verb', { exact: true }).selectOption('delete');
  await page.getByLabel('Resource', { exact: true }).selectOption('secrets');
  await page.getByLabel('Project', { exact: true }).fill(project);
  await page.getByRole('button', { name: 'Find' }).click();
  const holders = page.getByRole('region', { name: `Who can delete secrets in ${project}` });
  await holders.getByText('developer', { exact: true }).waitFor();
  await holders.getByText('system:masters', { exact: true }).waitFor();
  await check(page, 'who-can');

  await page.getByRole('link', { name: 'Routers', exact: true }).click();
  await page.getByRole('row', { name: /HostAlreadyClaimed/ }).waitFor();
  await check(page, 'routers');

  await page.goto(`${address}/console/project/${project}/network`);
  await page.getByRole('row', { name: /^2 Deny 0\.0\.0\.0\/0/ }).waitFor();
  await page.getByRole('heading', { name: 'Network of the project' }).waitFor();
  await check(page, 'egress');

  await page.goto(`${cluster}/image-usage`);
  await page.getByLabel('Keep images younger than (minutes)').fill('0');
  await page.getByLabel('Images to keep for each tag').fill('0');
  const removed = page.getByRole('grid', { name: 'Images that pruning would remove' }).or(page.getByRole('table', { name: 'Images that pruning would remove' }));
  await removed.getByRole('row', { name: new RegExp(`sha256:111111111111.*${project}/app:latest.*3\\.0 MiB`) }).waitFor();
  await check(page, 'image-usage');
  // As with the command, the preview lists no images if a reference cannot be parsed.
  const request = (method, path, body) =>
    page.evaluate(
      async ([verb, target, content]) => {
        const { csrf } = await (await fetch('/console/session')).json();
        return (await fetch('/console/proxy' + target, { method: verb, headers: { 'X-CSRF-Token': csrf, 'Content-Type': 'application/json' }, body: content })).status;
      },
      [method, path, body && JSON.stringify(body)],
    );
  const pods = `/api/v1/namespaces/${project}/pods`;
  const odd = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'odd' }, spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'odd', image: 'No Name!' }] } };
  expect((await request('POST', pods, odd)) === 201, 'the pod is not created');
  await page.reload();
  await page.getByText('Pruning removes nothing').waitFor();
  await page.getByText(`pod/odd namespace/${project}`).waitFor();
  expect((await removed.count()) === 0, 'the preview removes images');
  expect((await request('DELETE', `${pods}/odd`)) === 200, 'the pod is not deleted');
  const gone = async (target) => {
    const { csrf } = await (await fetch('/console/session')).json();
    return (await fetch('/console/proxy' + target, { headers: { 'X-CSRF-Token': csrf } })).status === 404;
  };
  await page.waitForFunction(gone, `${pods}/odd`);
  await page.reload();
  await page.getByLabel('Keep images younger than (minutes)').fill('0');
  await page.getByLabel('Images to keep for each tag').fill('0');
  await page.getByRole('button', { name: /^Remove \d+ images?$/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByText(/(One image was|\d+ images were) removed\./).waitFor();
  await removed.waitFor({ state: 'detached' });
  const image = `sha256:${'1'.repeat(64)}`;
  expect((await request('GET', `/apis/image.openshift.io/v1/images/${image}`)) === 404, 'the image remains');

  await page.goto(`${cluster}/users.user.openshift.io/developer`);
  await page.getByRole('row', { name: /^cluster-admin The whole cluster Directly/ }).waitFor();
  await check(page, 'user');
  await page.goto(`${cluster}/clusterresourcequotas.quota.openshift.io/${project}`);
  await page.getByRole('button', { name: project, exact: true }).waitFor();
  await check(page, 'cluster-quota');

  // The administrator creates a cluster-scoped object, and deletes it.
  await page.goto(`${cluster}/groups.user.openshift.io`);
  await page.getByRole('button', { name: 'Create Group' }).click();
  const editor = page.getByRole('textbox', { name: 'YAML editor' });
  const write = async (content) => {
    await editor.press('ControlOrMeta+a');
    await editor.press('Delete');
    await editor.fill(content);
  };
  await editor.getByText('kind: Group').waitFor();
  await check(page, 'cluster-import');
  await write('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lost}');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByText('ConfigMap lost: The object belongs to a project. Add the field metadata.namespace.').waitFor();
  await write('apiVersion: user.openshift.io/v1\nkind: Group\nmetadata: {name: buyers}\nusers: [ann]');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('link', { name: 'Group buyers' }).click();
  await page.getByRole('heading', { name: 'buyers', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'Groups', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'Import YAML' }).waitFor();

  await page.goto(`${cluster}/audit`);
  await page.getByLabel('User', { exact: true }).fill('developer');
  await page.getByLabel('Resource', { exact: true }).fill('pods/eviction');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('row', { name: /developer create pods\/eviction .*429/ }).first().waitFor();
  await check(page, 'audit');
  // The API server returns this status when the disruption budget prevents an eviction.
}, { expected: /status of 429/ });
