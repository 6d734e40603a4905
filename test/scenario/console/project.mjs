// A user logs in, creates a project, watches its changes, and logs out.
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: ${process.env.CONSOLE_IMAGE}
        command: [sh, -c, 'echo ready; exec httpd -f -p 8080']
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec:
  selector: {app: front}
  ports: [{port: 8080}]
`;

await open(async (page, context) => {
  await logIn(page, 'developer', '/console/projects?from=link');
  await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();
  expect(page.url() === `${address}/console/projects?from=link`, `the login opens ${page.url()}`);
  const readable = await page.evaluate(() => [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage)].join(' '));
  expect(!/sha256~|openshift-console/.test(readable), `scripts can read ${readable}`);

  await page.getByRole('button', { name: 'Create project' }).click();
  await page.locator('#project-name').fill('Not A Name');
  await page.getByText('Use at most 63 lower case letters').waitFor();
  await page.locator('#project-name').fill(project);
  await page.locator('#project-title').fill('<b>A</b> project');
  await shoot(page, 'create-project');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'Nothing runs in this project yet' }).waitFor();

  // Another window imports an application. This window displays the application without a reload.
  const other = await context.newPage();
  await other.goto(`${address}/console/project/${project}/import`);
  await other.getByRole('textbox', { name: 'YAML editor' }).fill(manifest);
  await other.getByRole('button', { name: 'Check' }).click();
  await other.getByText('The server accepts it.').waitFor();
  await shoot(other, 'import');
  await other.getByRole('button', { name: 'Create', exact: true }).click();
  await other.getByText('2 objects were created or changed.').waitFor();
  await other.close();
  const card = page.getByRole('region', { name: 'front' });
  await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
  await shoot(page, 'overview');
  await card.getByRole('button', { name: 'Add a pod to front' }).click();
  await card.getByRole('img', { name: '2 pods: 2 ready' }).waitFor();
  await card.getByRole('button', { name: 'Remove a pod from front' }).click();
  await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();

  await page.goto(`${address}/console/projects`);
  await page.getByText('<b>A</b> project').waitFor();
  await shoot(page, 'projects');
  await page.getByRole('button', { name: `Actions for ${project}` }).click();
  await page.getByRole('menuitem', { name: 'Edit project' }).click();
  await page.locator('#project-display-name').fill('Another title');
  await page.locator('#project-description').fill('All about fronts');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('Another title').waitFor();
  await page.getByRole('textbox', { name: 'Filter by name' }).fill('about fronts');
  await page.getByRole('link', { name: project }).waitFor();

  // The project is deleted only after the user types its name.
  await page.getByRole('button', { name: `Actions for ${project}` }).click();
  await page.getByRole('menuitem', { name: 'Delete project' }).click();
  const remove = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true });
  await page.getByRole('dialog').getByRole('textbox').fill(project.slice(0, -1));
  expect(await remove.isDisabled(), 'the project can be deleted without its name');
  await page.getByRole('dialog').getByRole('textbox').fill(project);
  await remove.click();
  await page.getByText('Terminating').or(page.getByText('No project matches the filter')).first().waitFor();
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByRole('menuitem', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'You are logged out' }).waitFor();
  await shoot(page, 'logged-out');
  await page.goto(`${address}/console/`);
  await page.locator('input[name="password"]').waitFor();
});
