// In Firefox, a user creates a project and imports an application.
import { createRequire } from 'node:module';

const web = createRequire(new URL('../../../console/web/package.json', import.meta.url));
const puppeteer = web('puppeteer-core');

const [project] = process.argv.slice(2);
const address = process.env.CONSOLE_URL;
const timeout = 30_000;

const container = { name: 'web', image: process.env.CONSOLE_IMAGE, command: ['httpd', '-f', '-p', '8080'] };
const manifest = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'front' },
  spec: {
    selector: { matchLabels: { app: 'front' } },
    template: { metadata: { labels: { app: 'front' } }, spec: { terminationGracePeriodSeconds: 0, containers: [container] } },
  },
};

const browser = await puppeteer.launch({ browser: 'firefox', executablePath: process.env.FIREFOX, headless: true, acceptInsecureCerts: true });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(timeout);
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.stack));
  try {
    await flow(page);
  } catch (error) {
    console.error(`at ${page.url()}\n${await page.evaluate(() => document.body.innerText).catch(() => '')}`);
    throw error;
  }
  if (problems.length > 0) {
    throw new Error('the browser reports:\n' + problems.join('\n'));
  }
} finally {
  await browser.close();
}

async function flow(page) {
  const fill = (selector, value) => page.locator(selector).fill(value);
  const click = (name) => page.locator(`::-p-xpath(//button[normalize-space() = "${name}"])`).click();
  const see = (text) => page.waitForSelector(`::-p-text(${text})`);
  await page.goto(`${address}/console/projects`);
  await fill('input[name="username"]', 'developer');
  await fill('input[name="password"]', process.env.CONSOLE_PASSWORD);
  await page.locator('button[type="submit"], input[type="submit"]').click();
  await click('Create project');
  await fill('#project-name', project);
  await click('Create');
  await see('Nothing runs in this project yet');

  await page.goto(`${address}/console/project/${project}/import`);
  await page.locator('.console-editor >>> .cm-content').click();
  // In Firefox, a script can insert a whole text only with this command. Typed text would be
  // changed, because the editor adds closing brackets.
  await page.evaluate((content) => document.execCommand('insertText', false, content), JSON.stringify(manifest));
  await click('Check');
  await see('The server accepts it.');
  await click('Create');
  await see('One object was created or changed.');

  await page.goto(`${address}/console/project/${project}/pods`);
  await page.waitForFunction(() => [...document.querySelectorAll('#main tr')].some((row) => /^front-.*Running/s.test(row.innerText)));

  await page.locator('[aria-label^="User menu"]').click();
  await click('Log out');
  await see('You are logged out');
  await page.goto(`${address}/console/`);
  await page.waitForSelector('input[name="password"]');
}
