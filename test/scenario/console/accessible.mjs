// axe reports no violations on the pages, in the light and in the dark theme.
import { address, logIn, open, shoot, violationsOf } from './browser.mjs';

const [project] = process.argv.slice(2);

const pages = {
  catalog: '/catalog',
  template: '/catalog/template/openshift/static-page',
  builder: '/catalog/builder/openshift/python',
  projects: '/projects',
  overview: `/project/${project}/overview`,
  import: `/project/${project}/import`,
  deployments: `/project/${project}/deployments.apps`,
  deployment: `/project/${project}/deployments.apps/front`,
  yaml: `/project/${project}/deployments.apps/front/yaml`,
  events: `/project/${project}/deployments.apps/front/events`,
  search: `/project/${project}/search?filter=front`,
  monitoring: `/project/${project}/monitoring`,
  membership: `/project/${project}/membership`,
  quota: `/project/${project}/quota`,
  'create-secret': `/project/${project}/create/secrets`,
  'create-route': `/project/${project}/create/routes.route.openshift.io`,
  environment: `/project/${project}/deployments.apps/front/environment`,
  history: `/project/${project}/deployments.apps/front/history`,
  secrets: `/project/${project}/secrets`,
  'command-line': '/command-line',
  missing: '/project/none/of/these/pages',
};

const found = [];
await open(async (page) => {
  await logIn(page, 'developer', '/console/projects');
  await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();
  for (const theme of ['light', 'dark']) {
    await page.evaluate((name) => localStorage.setItem('theme', name), theme);
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(`${address}/console${path}`);
      await page.locator('h1').first().waitFor();
      await page.locator('[role="progressbar"]').first().waitFor({ state: 'detached' });
      found.push(...(await violationsOf(page)).map((violation) => `${name} (${theme}): ${violation}`));
      await shoot(page, theme === 'dark' ? `${name}-dark` : name);
    }
  }
  await page.setViewportSize({ width: 360, height: 740 });
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(`${address}/console${path}`);
    await page.locator('h1').first().waitFor();
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (wider > 0) {
      found.push(`${name} is ${wider} pixels wider than a screen of 360`);
    }
    await shoot(page, `${name}-small`);
  }
});
if (found.length > 0) {
  throw new Error(found.join('\n'));
}
