// The network fails repeatedly. The console repeats requests that are safe to repeat. For other
// requests, the user decides.
import { address, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const root = `${address}/console/project/${project}`;

await open(
  async (page, context) => {
    await logIn(page, 'developer', '/console/projects');
    await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();

    // The first request for each URL fails, except the requests for the page itself, which browsers
    // repeat.
    const aborted = new Set();
    const isSpared = (request) => request.isNavigationRequest() || request.url().endsWith('/boot.js');
    await context.route('**/console/**', (route) => {
      const request = route.request();
      const key = `${request.method()} ${request.url()}`;
      if (isSpared(request) || aborted.has(key)) {
        return route.continue();
      }
      aborted.add(key);
      return route.abort('connectionclosed');
    });
    const sockets = [];
    await context.routeWebSocket('**/console/proxy/**', (socket) => {
      socket.connectToServer();
      sockets.push(socket);
    });
    await page.goto(`${root}/overview`);
    const card = page.getByRole('region', { name: 'front' });
    await card.getByRole('img', { name: '1 pod: 1 ready' }).waitFor();
    await Promise.all(sockets.splice(0).map((socket) => socket.close()));
    await card.getByRole('button', { name: 'Add a pod to front' }).click();
    await card.getByRole('img', { name: '2 pods: 2 ready' }).waitFor();

    // Pages and tabs that are loaded later must also have their styles.
    await page.getByRole('button', { name: 'Builds' }).click();
    await page.getByRole('link', { name: 'Build Configs' }).click();
    await page.getByRole('link', { name: 'waits' }).click();
    await page.getByRole('link', { name: 'YAML', exact: true }).or(page.getByRole('tab', { name: 'YAML', exact: true })).click();
    await page.getByRole('textbox', { name: 'YAML editor' }).waitFor();
    const sheets = await page.evaluate(() => [...document.querySelectorAll('link[rel="stylesheet"]')].map((link) => [link.href, link.sheet !== null]));
    for (const [href, isLoaded] of sheets) {
      expect(isLoaded, `style sheet ${href} is missing`);
    }
    const assets = [...aborted].filter((key) => key.includes('/assets/'));
    expect(assets.some((key) => key.endsWith('.css')) && assets.some((key) => key.endsWith('.js')), `the test aborts only ${assets}`);

    // The user decides whether to repeat a request that could take effect twice.
    await page.getByRole('button', { name: 'Actions' }).click();
    await page.getByRole('menuitem', { name: 'Start build' }).click();
    await page.getByText('Start build: not confirmed').waitFor();
    await page.getByText('The action might have been completed.').waitFor();
    await shoot(page, 'not-confirmed');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The server accepted the request.').waitFor();
    await page.getByRole('link', { name: 'Builds', exact: true }).click();
    await page.getByRole('link', { name: 'waits-1' }).waitFor();
    expect((await page.getByRole('link', { name: /^waits-/ }).count()) === 1, 'the console repeated the start of a build');

    // If the console cannot be loaded, the page displays a message.
    await context.unroute('**/console/**');
    await context.route('**/console/{boot.js,assets/**}', (route) => route.abort('connectionclosed'));
    await page.goto(`${root}/overview`);
    await page.getByText('The web console does not load.').waitFor();
  },
  { expected: /net::ERR_CONNECTION_CLOSED/ },
);
