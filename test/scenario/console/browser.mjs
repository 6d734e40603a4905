// Controls the tests' browser: the distribution's Chromium, with the Playwright version in the
// console's lock file.
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync } from 'node:fs';

const web = createRequire(new URL('../../../console/web/package.json', import.meta.url));
const { chromium } = web('playwright-core');

export const address = process.env.CONSOLE_URL;
const password = process.env.CONSOLE_PASSWORD;
const screenshots = process.env.CONSOLE_SCREENSHOTS;

const timeout = 60_000;

/** layoutTimeout is the maximum time in which a page adapts to the window's size. */
const layoutTimeout = 5_000;

/**
 * open starts the browser with arguments, and runs a flow with a page. It fails if the page reports
 * an unexpected error.
 */
export async function open(flow, { expected, args = [], ...options } = {}) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...args],
  });
  const problems = [];
  try {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 }, ...options });
    context.setDefaultTimeout(timeout);
    context.on('weberror', (error) => problems.push(String(error.error().stack)));
    context.on('console', (message) => {
      if (message.type() === 'error' && !isExpected(message.text(), message.location().url) && !expected?.test(message.text())) {
        problems.push(`${message.text()} at ${message.location().url}`);
      }
    });
    const page = await context.newPage();
    try {
      await flow(page, context);
    } catch (error) {
      console.error(`at ${page.url()}\n${await page.locator('body').ariaSnapshot().catch(() => '')}\n${found.join('\n')}`);
      await shoot(page, 'failure').catch(() => {});
      throw error;
    }
  } finally {
    await browser.close();
  }
  expect(found.length === 0, found.join('\n'));
  if (problems.length > 0) {
    throw new Error('the browser reports:\n' + problems.join('\n'));
  }
}

/**
 * isExpected reports whether a flow itself causes an error, such as the error of a request without
 * a session. After each response to an unauthenticated client, such as a login page, the API server
 * closes the connection, which sometimes aborts the next request. The console repeats this request;
 * otherwise, the flow would not receive its result. When the browser leaves a page, it cancels the
 * download of the page's icon.
 */
function isExpected(text, url) {
  if (/net::ERR_(FAILED|ABORTED)/.test(text) && url.endsWith('/console/icon.svg')) {
    return true;
  }
  return /status of (401|403|404|409|422)/.test(text) || /WebSocket connection to .* failed/.test(text) || /net::ERR_(CONNECTION_CLOSED|SOCKET_NOT_CONNECTED)/.test(text);
}

/** logIn opens a console page and logs in on the OAuth server's pages. */
export async function logIn(page, user, path = '/console/') {
  await page.goto(address + path);
  await page.locator('input[name="username"]').fill(user);
  await page.locator('input[name="password"]').fill(user === 'developer' ? password : 'any');
  await page.locator('button[type="submit"], input[type="submit"]').click();
}

/** still ends the page's transitions, in which colors have a different contrast. */
async function still(page) {
  await page.evaluate(() => {
    window.still ??= new CSSStyleSheet();
    window.still.replaceSync('* { transition: none !important; animation: none !important }');
    document.adoptedStyleSheets = [...document.adoptedStyleSheets.filter((sheet) => sheet !== window.still), window.still];
  });
}

/**
 * shoot saves a screenshot if the test requests them. It records links of the page that would run
 * a script.
 */
export async function shoot(page, name) {
  const links = await page.evaluate(() => [...document.links].filter(({ protocol }) => !/^(https?|mailto):$/.test(protocol)).map(({ outerHTML }) => outerHTML.slice(0, 200)));
  found.push(...links.map((html) => `${name} has the link ${html}`));
  if (screenshots) {
    await still(page);
    mkdirSync(screenshots, { recursive: true });
    await page.screenshot({ path: `${screenshots}/${name}.png` });
  }
}

const axe = readFileSync(web.resolve('axe-core/axe.min.js'), 'utf8');

/**
 * violationsOf returns the violations that axe reports for a page: of all rules, or only of the
 * rules about colors.
 */
async function violationsOf(page, onlyColors) {
  // evaluate can run the script although the page's content security policy rejects other scripts.
  if (!(await page.evaluate(() => 'axe' in window))) {
    await page.evaluate(axe);
  }
  const rules = onlyColors ? { runOnly: ['color-contrast', 'link-in-text-block'] } : {};
  const { violations } = await page.evaluate((options) => window.axe.run(document, { resultTypes: ['violations'], ...options }), rules);
  return violations.map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.html.slice(0, 200)).join('\n    ')}`);
}

/** loaded waits until no part of a page is loading. */
export async function loaded(page) {
  await page.getByRole('progressbar', { name: 'Loading' }).first().waitFor({ state: 'detached' });
}

/**
 * found contains the problems that check has found. If there are any, the flow fails at its end.
 */
const found = [];

/**
 * cutElements returns the page's elements that are partly beyond its right edge, and that the user
 * cannot scroll into view. It also returns column names that are wider than their columns. It runs
 * in the page.
 *
 * The terminal's invisible lines for screen readers keep their width until the next output.
 */
function cutElements() {
  const main = document.querySelector('#main');
  const edge = Math.min(main?.getBoundingClientRect().right ?? innerWidth, innerWidth) + 1;
  const scrolls = (element) => element !== main && (/auto|scroll|hidden|clip/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  const wide = [...(main?.querySelectorAll('*') ?? [])].filter((element) => element.getBoundingClientRect().right > edge && !element.closest('svg, .xterm-accessibility') && !scrolls(element));
  const columns = [...document.querySelectorAll('th')].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1);
  return [...wide, ...columns].slice(-3).map((element) => element.outerHTML.slice(0, 200));
}

/**
 * check saves screenshots of a page in both themes. It records the violations that axe reports, and
 * whether the page is too wide for a small screen. close closes a menu, whose position depends on
 * the size of the window.
 */
export async function check(page, name, close) {
  await loaded(page);
  await still(page);
  for (const theme of ['light', 'dark']) {
    const isDark = theme === 'dark'; // the themes differ only in their colors
    await page.evaluate((dark) => document.documentElement.classList.toggle('pf-v6-theme-dark', dark), isDark);
    await shoot(page, isDark ? `${name}-dark` : name);
    found.push(...(await violationsOf(page, isDark)).map((violation) => `${name} (${theme}): ${violation}`));
    found.push(...(await page.evaluate(cutElements)).map((html) => `${name} cuts off: ${html}`));
  }
  await page.evaluate(() => document.documentElement.classList.remove('pf-v6-theme-dark'));
  const size = page.viewportSize();
  await close?.();
  await page.setViewportSize({ width: 360, height: 740 });
  await page.waitForFunction(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth, undefined, { timeout: layoutTimeout }).catch(() => {
    found.push(`${name} is wider than a screen of 360 pixels`);
  });
  found.push(...(await page.evaluate(cutElements)).map((html) => `${name} cuts off on a screen of 360 pixels: ${html}`));
  await shoot(page, `${name}-small`);
  await page.setViewportSize(size);
}

/** travel opens another console page as a link does, without reloading the console. */
export async function travel(page, path) {
  await page.evaluate((to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, `/console${path}`);
}

/** expect fails with a message unless a condition holds. */
export function expect(condition, message) {
  if (!condition) {
    throw new Error(message);
  }
}
