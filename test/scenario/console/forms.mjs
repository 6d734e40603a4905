// A user creates and edits a secret, links it to a service account, and creates a claim, a route
// with two services and an autoscaler in forms.
import { address, check, expect, logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(async (page) => {
  const create = page.getByRole('button', { name: 'Create', exact: true });
  const input = (name) => page.locator(`#input-${name}`);
  const act = async (action) => {
    await page.getByRole('button', { name: 'Actions', exact: true }).click();
    await page.getByRole('menuitem', { name: action }).click();
  };
  const edit = async (action, label, value) => {
    await act(action);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(label).fill(value);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const read = (path) =>
    page.evaluate(async (target) => {
      const { csrf } = await (await fetch('/console/session')).json();
      return (await fetch('/console/proxy' + target, { headers: { 'X-CSRF-Token': csrf } })).json();
    }, path);

  await logIn(page, 'developer', `/console/project/${project}/secrets`);
  await page.getByRole('button', { name: 'Create Secret' }).click();
  await page.locator('#object-name').fill('pull');
  await input('kind').selectOption('registry');
  await input('server').fill('registry.example.com');
  await input('username').fill('ann');
  expect(await create.isDisabled(), 'the form can be sent without a password');
  await input('password').fill('secret words');
  await create.click();
  await page.getByRole('heading', { name: 'pull', level: 1 }).waitFor();
  const secret = await read(`/api/v1/namespaces/${project}/secrets/pull`);
  expect(secret.type === 'kubernetes.io/dockerconfigjson' && atob(secret.data['.dockerconfigjson']).includes('"password":"secret words"'), JSON.stringify(secret));

  // The user adds a value to the secret. The form encodes it.
  await act('Edit data');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Add a row' }).click();
  await dialog.getByRole('textbox', { name: 'Key 2' }).fill('note');
  await dialog.getByRole('textbox', { name: 'Value 2' }).fill('über');
  await check(page, 'edit-data');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const changed = await read(`/api/v1/namespaces/${project}/secrets/pull`);
  expect(changed.data.note === 'w7xiZXI=' && changed.data['.dockerconfigjson'] === secret.data['.dockerconfigjson'], JSON.stringify(changed));

  await page.goto(`${root}/serviceaccounts/default`);
  await act('Link a secret');
  await page.getByRole('dialog').getByRole('combobox', { name: 'Secret' }).selectOption('pull');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const account = await read(`/api/v1/namespaces/${project}/serviceaccounts/default`);
  expect(account.imagePullSecrets.some(({ name }) => name === 'pull'), JSON.stringify(account));

  await page.goto(`${root}/persistentvolumeclaims`);
  await page.getByRole('button', { name: 'Create Persistent Volume Claim' }).click();
  await page.locator('#object-name').fill('data');
  await input('size').fill('much');
  await page.getByText('Write a quantity such as').waitFor();
  await input('size').fill('16Mi');
  await create.click();
  await page.getByRole('heading', { name: 'data', level: 1 }).waitFor();
  await page.getByText('16Mi').first().waitFor();

  await page.goto(`${root}/services/front`);
  await act('Create route');
  await page.locator('#input-service option:checked[value="front"]').waitFor({ state: 'attached' });
  await page.locator('#object-name').fill('both');
  await input('port').selectOption('8080');
  await input('other').selectOption('front');
  await page.getByRole('spinbutton', { name: 'Share of the second service' }).fill('30');
  await page.keyboard.press('Enter');
  await input('termination').selectOption('edge');
  await input('insecure').selectOption('Redirect');
  await create.click();
  await page.getByRole('heading', { name: 'both', level: 1 }).waitFor();
  const route = await read(`/apis/route.openshift.io/v1/namespaces/${project}/routes/both`);
  expect(route.spec.to.weight === 70 && route.spec.alternateBackends[0].weight === 30 && route.spec.tls.insecureEdgeTerminationPolicy === 'Redirect', JSON.stringify(route.spec));

  await edit('Edit route', 'Path', '/shop');
  const edited = await read(`/apis/route.openshift.io/v1/namespaces/${project}/routes/both`);
  expect(JSON.stringify({ ...edited.spec, path: undefined }) === JSON.stringify({ ...route.spec, path: undefined }) && edited.spec.path === '/shop', JSON.stringify(edited.spec));

  await page.goto(`${root}/deployments.apps/front`);
  await act('Add autoscaler');
  await page.locator('#input-targetDeployment option:checked[value="front"]').waitFor({ state: 'attached' });
  await page.locator('#object-name').fill('front');
  await create.click();
  await page.getByRole('heading', { name: 'front', level: 1 }).waitFor();
  // The server provides this column.
  await page.locator('dl > div', { hasText: /^ReferenceDeployment\/front$/ }).waitFor();
  await edit('Edit autoscaler', 'Maximum number of pods', '5');
  const scaler = await read(`/apis/autoscaling/v2/namespaces/${project}/horizontalpodautoscalers/front`);
  expect(scaler.spec.scaleTargetRef.name === 'front' && scaler.spec.maxReplicas === 5, JSON.stringify(scaler.spec));

  // The user edits a container's environment variables. References are separate.
  await page.goto(`${root}/deployments.apps/front/environment`);
  await page.getByRole('textbox', { name: 'Name 1' }).fill('GREETING');
  await page.getByRole('textbox', { name: 'Value 1' }).fill('hello');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved.').waitFor();
  const workload = await read(`/apis/apps/v1/namespaces/${project}/deployments/front`);
  expect(JSON.stringify(workload.spec.template.spec.containers[0].env) === '[{"name":"GREETING","value":"hello"}]', JSON.stringify(workload.spec.template.spec));

  // The user reverts the change.
  await page.getByRole('link', { name: 'History' }).or(page.getByRole('tab', { name: 'History' })).click();
  await page.getByRole('button', { name: 'Roll back to revision 1' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back', exact: true }).click();
  await page.getByRole('button', { name: 'Roll back to revision 2' }).waitFor();
  const rolledBack = await read(`/apis/apps/v1/namespaces/${project}/deployments/front`);
  expect(rolledBack.spec.template.spec.containers[0].env === undefined, JSON.stringify(rolledBack.spec.template.spec));
});
