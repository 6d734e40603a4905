// The browser of the tests: the distribution's Chromium, driven by Playwright of the console's lock file.
import { createRequire } from 'node:module';
import { mkdirSync } from 'node:fs';

const web = createRequire(new URL('../../../console/web/package.json', import.meta.url));
const { chromium } = web('playwright-core');

export const address = process.env.CONSOLE_URL;
const password = process.env.CONSOLE_PASSWORD;
const screenshots = process.env.CONSOLE_SCREENSHOTS;

const timeout = 60_000;
// What Chromium reports for requests and connections that a change of the network ends.
const networkChanged = /net::ERR_(NETWORK_CHANGED|CONNECTION_CLOSED|SOCKET_NOT_CONNECTED)/;
const visits = 5;

/** open starts the browser, passes a page to a flow, and fails if the page reports an error. */
export async function open(flow, options = {}) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  const problems = [];
  try {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 }, ...options });
    context.setDefaultTimeout(timeout);
    context.on('weberror', (error) => problems.push(String(error.error().stack)));
    context.on('console', (message) => {
      if (message.type() === 'error' && !isExpected(message.text())) {
        problems.push(message.text());
      }
    });
    const page = await context.newPage();
    try {
      await flow(page, context);
    } catch (error) {
      console.error(`at ${page.url()}\n${await page.locator('body').ariaSnapshot().catch(() => '')}`);
      await shoot(page, 'failure').catch(() => {});
      throw error;
    }
  } finally {
    await browser.close();
  }
  if (problems.length > 0) {
    throw new Error('the browser reports:\n' + problems.join('\n'));
  }
}

/**
 * isExpected reports whether an error is one that a flow causes, such as a request without a session.
 * The browser runs on the node: each pod that starts changes the network and aborts requests. The
 * console has to repeat them. If it does not, the flow misses what they bring.
 */
function isExpected(text) {
  return /status of (401|403|404|409|422)/.test(text) || /WebSocket connection to .* failed/.test(text) || networkChanged.test(text);
}

/** visit opens an address. It tries again if a pod that starts aborts the request for the page. */
export async function visit(page, url) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await page.goto(url);
    } catch (error) {
      if (attempt === visits || !networkChanged.test(error.message)) {
        throw error;
      }
    }
  }
}

/** logIn opens a page of the console and logs in on the pages of the OAuth server. */
export async function logIn(page, user, path = '/console/') {
  await visit(page, address + path);
  await page.locator('input[name="username"]').fill(user);
  await page.locator('input[name="password"]').fill(user === 'developer' ? password : 'any');
  await page.locator('button[type="submit"], input[type="submit"]').click();
}

/** shoot saves a screenshot if the test asks for them. */
export async function shoot(page, name) {
  if (screenshots) {
    mkdirSync(screenshots, { recursive: true });
    await page.screenshot({ path: `${screenshots}/${name}.png` });
  }
}

/** expect fails with a message unless a condition holds. */
export function expect(condition, message) {
  if (!condition) {
    throw new Error(message);
  }
}
