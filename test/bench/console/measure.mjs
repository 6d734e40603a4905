// Measures the web console in the distribution's Chromium and prints the result as JSON:
//   node measure.mjs load PROJECT ROUNDS
//     prints sizes in bytes, and times from the login to the overview in ms
//   node measure.mjs watch PROJECT SECONDS PODS
//     prints times in ms: from the login to the complete list, from each change and from its watch
//     event to its picture, and between frames
//
// A change sets a pod's reason to "t" followed by the time of the request, in ms since 1970. Its
// picture is the first frame in which the table contains the reason.
import { createRequire } from 'node:module';
import { readFileSync, statSync } from 'node:fs';
import { extname } from 'node:path';

const web = createRequire(new URL('../../../console/web/package.json', import.meta.url));
const { chromium } = web('playwright-core');

const address = process.env.CONSOLE_URL;
const timeout = 120_000;
const [part, project, count, pods] = process.argv.slice(2);

/** build is the folder that contains the console's files. */
const build = new URL('../../../console/web/build/', import.meta.url);

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

/** logIn fills in and submits the login form. It returns the submission time, in ms since 1970. */
async function logIn(page, target) {
  await page.goto(address + target);
  await page.locator('input[name="username"]').fill('developer');
  await page.locator('input[name="password"]').fill(process.env.CONSOLE_PASSWORD);
  const start = Date.now();
  await page.locator('button[type="submit"], input[type="submit"]').click({ noWaitAfter: true });
  return start;
}

/** shown returns the time of the first frame in which an element of the page has the given text. */
async function shown(page, selector, content) {
  const find = ([query, wanted]) => [...document.querySelectorAll(query)].some((element) => element.textContent.includes(wanted)) && Date.now();
  const handle = await page.waitForFunction(find, [selector, content], { polling: 'raf' });
  return handle.jsonValue();
}

/** sizeOf returns the compressed size of one of the console's files, in bytes. */
function sizeOf(place) {
  const name = place.replace(/^\/console\//, '');
  const path = new URL(extname(name) === '' ? 'index.html' : name, build);
  return (statSync(path.pathname + '.br', { throwIfNoEntry: false }) ?? statSync(path)).size;
}

/**
 * traffic measures the sizes of the responses that a page receives. received (the console's files)
 * and api (API responses) include headers. The other figures describe the compressed files without
 * headers, and depend only on the build.
 */
async function traffic(context, page) {
  const bytes = { received: 0, api: 0, files: 0, count: 0, scripts: 0, styles: 0, fonts: 0 };
  const kinds = { '.js': 'scripts', '.css': 'styles', '.woff2': 'fonts' };
  const responses = new Map();
  const places = new Set(); // the browser serves repeated requests for a file from its cache
  const client = await context.newCDPSession(page);
  await client.send('Network.enable');
  client.on('Network.responseReceived', ({ requestId, response, type }) => responses.set(requestId, { place: new URL(response.url).pathname, type }));
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const { place = '', type } = responses.get(requestId) ?? {};
    if (place.startsWith('/console/proxy') || type === 'Fetch') {
      bytes.api += encodedDataLength;
      return;
    }
    if (!place.startsWith('/console/') || places.has(place)) {
      return;
    }
    places.add(place);
    const size = sizeOf(place);
    bytes.received += encodedDataLength;
    bytes.files += size;
    bytes.count++;
    const kind = kinds[extname(place)];
    if (kind) {
      bytes[kind] += size;
    }
  });
  return bytes;
}

async function load(rounds) {
  const result = { overview: [] };
  const first = await open();
  const bytes = await traffic(first.context, first.page);
  await logIn(first.page, '/console/');
  await shown(first.page, '#main h1', 'Catalog');
  await first.page.waitForFunction(() => document.querySelectorAll('#main .pf-v6-c-card').length > 0);
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

/** recordArrivals records when watch events about changes arrive. It runs in the page. */
function recordArrivals() {
  const arrivals = (window.arrivals = new Map());
  window.WebSocket = class extends WebSocket {
    constructor(...parameters) {
      super(...parameters);
      this.addEventListener('message', ({ data }) => {
        const time = typeof data === 'string' && /"t(\d{13})"/.exec(data)?.[1];
        if (time && !arrivals.has(time)) arrivals.set(time, Date.now());
      });
    }
  };
}

async function watch(seconds) {
  const { context, page } = await open();
  await page.addInitScript(recordArrivals);
  const start = await logIn(page, `/console/project/${project}/pods`);
  await page.waitForSelector(`#main table[aria-rowcount="${Number(pods) + 1}"]`);
  const complete = Date.now() - start;
  const client = await context.newCDPSession(page);
  const measured = await page.evaluate(async (duration) => {
    const end = performance.now() + duration;
    const frames = [];
    const pictures = [];
    const drawings = [];
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
            drawings.push(Date.now() - window.arrivals.get(time));
          }
        }
        if (now < end) requestAnimationFrame(frame);
        else resolve();
      };
      requestAnimationFrame(frame);
    });
    return { frames, pictures, drawings };
  }, seconds * 1000);
  await client.send('HeapProfiler.enable');
  await client.send('HeapProfiler.collectGarbage');
  await client.send('Performance.enable');
  const { metrics } = await client.send('Performance.getMetrics');
  return { ...measured, complete, heap: metrics.find(({ name }) => name === 'JSHeapUsedSize').value, memory: await rendererMemory() };
}

/** rendererMemory returns the proportional set size of the page's process, in bytes. */
async function rendererMemory() {
  const client = await browser.newBrowserCDPSession();
  const { processInfo } = await client.send('SystemInfo.getProcessInfo');
  const sizes = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => /^Pss: +(\d+) kB/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))?.[1]);
  return Math.max(...sizes.map(Number)) * 1024;
}
