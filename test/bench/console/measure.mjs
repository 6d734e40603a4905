// Measures the web console in the distribution's Chromium and prints the result as JSON:
//   node measure.mjs load PROJECT ROUNDS     sizes in bytes, times from the login to the overview in ms
//   node measure.mjs watch PROJECT SECONDS   times from a change to its picture and of frames in ms
//
// A change gives a pod the reason "t" and the time of its request, in ms since 1970. A picture is
// the first frame in which the table contains the reason.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const web = createRequire(new URL('../../../console/web/package.json', import.meta.url));
const { chromium } = web('playwright-core');

const address = process.env.CONSOLE_URL;
const timeout = 120_000;
const [part, project, count] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
try {
  const result = part === 'load' ? await load(Number(count)) : await watch(Number(count));
  console.log(JSON.stringify(result));
} finally {
  await browser.close();
}

/** open opens a page with an empty cache. */
async function open() {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(timeout);
  return { context, page: await context.newPage() };
}

/** logIn fills in the form of the login, sends it and returns the time in ms since 1970. */
async function logIn(page, target) {
  await page.goto(address + target);
  await page.locator('input[name="username"]').fill('developer');
  await page.locator('input[name="password"]').fill(process.env.CONSOLE_PASSWORD);
  const start = Date.now();
  await page.locator('button[type="submit"], input[type="submit"]').click({ noWaitAfter: true });
  return start;
}

/** shown returns the time of the first frame in which the page contains an element with a text. */
async function shown(page, selector, content) {
  const find = ([query, wanted]) => [...document.querySelectorAll(query)].some((element) => element.textContent.includes(wanted)) && Date.now();
  const handle = await page.waitForFunction(find, [selector, content], { polling: 'raf' });
  return handle.jsonValue();
}

/** traffic counts the bytes that a page receives, with headers: files of the console, and the API. */
async function traffic(context, page) {
  const bytes = { files: 0, api: 0 };
  const addresses = new Map();
  const client = await context.newCDPSession(page);
  await client.send('Network.enable');
  client.on('Network.requestWillBeSent', ({ requestId, request }) => addresses.set(requestId, new URL(request.url).pathname));
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const place = addresses.get(requestId) ?? '';
    if (place.startsWith('/console/proxy')) {
      bytes.api += encodedDataLength;
    } else if (place.startsWith('/console')) {
      bytes.files += encodedDataLength;
    }
  });
  return bytes;
}

async function load(rounds) {
  const result = { overview: [] };
  const first = await open();
  const bytes = await traffic(first.context, first.page);
  await logIn(first.page, '/console/');
  await shown(first.page, 'h1', '');
  await first.page.waitForLoadState('networkidle');
  result.catalog = bytes;
  await first.context.close();
  for (let round = 0; round < rounds; round++) {
    const { context, page } = await open();
    const own = await traffic(context, page);
    const start = await logIn(page, `/console/project/${project}/overview`);
    result.overview.push((await shown(page, '#main h2, #main h3, #main section', 'front')) - start);
    await page.waitForLoadState('networkidle');
    result.overviewBytes = own;
    await context.close();
  }
  return result;
}

async function watch(seconds) {
  const { context, page } = await open();
  await logIn(page, `/console/project/${project}/pods`);
  await shown(page, '#main td', 'pod-00000');
  const client = await context.newCDPSession(page);
  const measured = await page.evaluate(async (duration) => {
    const end = performance.now() + duration;
    const frames = [];
    const pictures = [];
    const seen = new Map([...document.querySelectorAll('#main tr')].map((row) => [row.querySelector('a')?.textContent, reason(row)]));
    function reason(row) {
      return [...row.cells].map(({ textContent }) => /^t(\d{13})$/.exec(textContent)?.[1]).find(Boolean);
    }
    let last = performance.now();
    await new Promise((resolve) => {
      const frame = (now) => {
        frames.push(now - last);
        last = now;
        for (const row of document.querySelectorAll('#main tr')) {
          const name = row.querySelector('a')?.textContent;
          const time = reason(row);
          if (time && seen.get(name) !== time) {
            seen.set(name, time);
            pictures.push(Date.now() - Number(time));
          }
        }
        if (now < end) requestAnimationFrame(frame);
        else resolve();
      };
      requestAnimationFrame(frame);
    });
    return { frames, pictures };
  }, seconds * 1000);
  await client.send('HeapProfiler.enable');
  await client.send('HeapProfiler.collectGarbage');
  await client.send('Performance.enable');
  const { metrics } = await client.send('Performance.getMetrics');
  return { ...measured, heap: metrics.find(({ name }) => name === 'JSHeapUsedSize').value, memory: await rendererMemory() };
}

/** rendererMemory returns the proportional set size of the page's process, in bytes. */
async function rendererMemory() {
  const client = await browser.newBrowserCDPSession();
  const { processInfo } = await client.send('SystemInfo.getProcessInfo');
  const sizes = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => /^Pss: +(\d+) kB/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1]);
  return Math.max(...sizes.map(Number)) * 1024;
}
