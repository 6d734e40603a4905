// The console applies the settings in its ConfigMap: URLs, extensions with their pages, downloads,
// links and the timeout. For a pod with a Jolokia agent, it displays the JVM's beans.
import { address, check, expect, logIn, open, shoot } from './browser.mjs';

const [project] = process.argv.slice(2);
const { hostname: server } = new URL(address);
const master = address.replace(server, 'master.example.com');

const files = {
  '/brand.js': ['text/javascript', `OPENSHIFT_CONSTANTS.CLI = { 'Company client': 'https://www.example.com/oc', Bad: 'javascript:alert(1)' };
    OPENSHIFT_CONSTANTS.HELP = { Handbook: 'https://www.example.com/handbook', default: 'welcome.html' };
    document.documentElement.dataset.color = OPENSHIFT_EXTENSION_PROPERTIES.color;
    OPENSHIFT_CONSTANTS.PAGES = [
      {
        path: 'costs',
        title: 'Costs',
        render: async (element, { project, request, signal }) => {
          signal.onabort = () => (document.documentElement.dataset.left = project);
          const { items } = await request('GET', '/api/v1/namespaces/' + project + '/services');
          const list = element.appendChild(document.createElement('ul'));
          items.forEach(({ metadata }) => (list.appendChild(document.createElement('li')).textContent = metadata.name + ' costs 5 EUR'));
          await request('GET', '/api/v1/namespaces/' + project + '/services/none');
        },
      },
      { path: '../projects', title: 'Broken', render: () => undefined },
    ];
    OPENSHIFT_CONSTANTS.PROJECT_NAVIGATION.push(
      { label: 'Dashboard', iconClass: 'fa fa-dashboard', href: 'https://www.example.com/dashboard' },
      { label: 'More', secondaryNavSections: [{ header: 'Own', items: [{ label: 'Endpoints', href: '/endpoints' }] }] },
      { label: 'Trap', href: 'javascript:alert(1)' },
    );
    OPENSHIFT_CONSTANTS.APP_LAUNCHER_NAVIGATION = [{ title: 'My account', iconClass: 'pficon pficon-user', href: 'https://www.example.com/account', tooltip: 'Change your password' }];
    OPENSHIFT_CONSTANTS.SAAS_OFFERINGS = [{ title: 'Mail', icon: 'fa fa-envelope', url: 'https://www.example.com/mail', description: 'Read your mail.' }];
    OPENSHIFT_CONSTANTS.SERVICE_CATALOG_CATEGORIES.find(({ id }) => id === 'languages').subCategories.push({ id: 'snakes', label: 'Snakes', tags: ['python'] });
    OPENSHIFT_CONSTANTS.QUOTA_NOTIFICATION_MESSAGE = { services: 'Order <a href="https://www.example.com/more">more services</a>.' };
    OPENSHIFT_CONSTANTS.AVAILABLE_KINDS_BLACKLIST = ['PodTemplate'];
    OPENSHIFT_CONSTANTS.CREATE_FROM_URL_WHITELIST = ['openshift'];
    OPENSHIFT_CONSTANTS.DISABLE_COPY_LOGIN_COMMAND = true;
    OPENSHIFT_CONSTANTS.DISABLE_SERVICE_CATALOG_LANDING_PAGE = true;
    OPENSHIFT_CONSTANTS.GUIDED_TOURS.landing_page_tour.auto_launch = true;`],
  '/brand.css': ['text/css', '.console-brand { text-decoration-color: rgb(1, 2, 3) }'],
  '/other.js': ['text/javascript', 'window.intruded = true'],
  '/bye': ['text/html', '<h1>Goodbye</h1>'],
};

/** customize tests the constants of OpenShift 3.11 that the script has changed. */
async function customize(page) {
  const go = (path) => page.goto(`${master}/console${path}`);
  const heading = (name) => page.getByRole('heading', { name, level: 1, exact: true });
  const urlOf = (locator) => locator.getAttribute('href');
  // The first page is the list of projects. On the first visit of the catalog, its tour starts.
  await go('/');
  await heading('Projects').waitFor();
  await go('/catalog');
  const step = page.getByRole('dialog');
  await step.getByRole('heading', { name: 'Find what you need' }).waitFor();
  await check(page, 'tour');
  for (const title of ['Choose a category', 'Bring your own', 'Work in a project', 'Get help', 'Log in on the command line']) {
    await step.getByRole('button', { name: 'Next' }).click();
    await step.getByRole('heading', { name: title }).waitFor();
  }
  await step.getByRole('button', { name: 'End the tour' }).click();
  await step.waitFor({ state: 'detached' });

  const mail = page.getByRole('link', { name: 'Mail', exact: true });
  expect((await urlOf(mail)) === 'https://www.example.com/mail', 'the catalog has no featured application');
  await check(page, 'catalog-customized');
  await page.getByRole('button', { name: 'Snakes' }).click();
  await mail.waitFor({ state: 'detached' });
  await page.getByText('Python', { exact: true }).first().waitFor();
  expect((await page.getByText('Node.js', { exact: true }).count()) === 0, 'the category contains items with other tags');
  await page.reload();
  await page.getByRole('button', { name: 'Snakes', pressed: true }).waitFor();
  expect((await step.count()) === 0, 'the tour starts again');
  await page.getByRole('button', { name: 'Other applications' }).click();
  const account = page.getByRole('menuitem', { name: /^My account/ });
  expect((await urlOf(account)) === 'https://www.example.com/account', 'the launcher has another address');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'User menu: developer' }).click();
  await page.getByRole('menuitem', { name: 'Log out' }).waitFor();
  expect((await page.getByRole('menuitem', { name: 'Get a login command' }).count()) === 0, 'the menu offers a login command');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Help' }).click();
  await page.getByRole('menuitem', { name: 'Tour of the catalog' }).click();
  await step.getByRole('heading', { name: 'Find what you need' }).waitFor();
  await page.keyboard.press('Escape');
  await step.waitFor({ state: 'detached' });

  await go('/create?template=app&namespace=other');
  await page.getByText('Links cannot open templates and images of the project other').waitFor();
  await go(`/project/${project}/quota`);
  const more = page.getByRole('link', { name: 'more services' });
  expect((await urlOf(more)) === 'https://www.example.com/more', 'the page Quota has no message');
  const navigation = page.getByRole('navigation', { name: 'Navigation' });
  expect((await urlOf(navigation.getByRole('link', { name: 'Dashboard' }))) === 'https://www.example.com/dashboard', 'the navigation has no link');
  expect((await navigation.getByText('Trap').count()) === 0, 'the navigation links to a script');
  await navigation.getByRole('button', { name: 'More' }).click();
  await navigation.getByRole('link', { name: 'Endpoints' }).click();
  await heading('Endpoints').waitFor();
  await go(`/project/${project}/other`);
  await page.getByRole('link', { name: 'Pods', exact: true }).waitFor();
  expect((await page.getByRole('link', { name: 'Pod Templates' }).count()) === 0, 'the page lists a hidden kind');
}

await open(async (page, context) => {
  await context.route('https://www.example.com/**', (route) => {
    const [contentType, body] = files[new URL(route.request().url()).pathname];
    return route.fulfill({ contentType, body });
  });

  // After a login at the master's other address, the browser is redirected to the configured
  // address, and sends all further requests to it.
  await logIn(page, 'developer', '/console/command-line');
  await page.getByRole('heading', { name: 'Command line tools', level: 1 }).waitFor();
  expect(page.url() === `${master}/console/command-line`, `the page is ${page.url()}`);
  const sockets = [];
  page.on('websocket', (socket) => sockets.push(new URL(socket.url()).host));
  const login = page.getByRole('textbox', { name: 'Command line tools' });
  expect((await login.inputValue()) === `oc login ${master}`, `the command is ${await login.inputValue()}`);

  // The page offers the server's and the extension's downloads. The extension can read its
  // properties. The browser rejects other scripts.
  const downloads = page.getByRole('list', { name: 'Downloads' });
  const path = await downloads.getByRole('link', { name: /^oc for Linux/ }).first().getAttribute('href');
  const magic = await page.evaluate(async (of) => (await fetch(of, { headers: { Range: 'bytes=1-3' } })).text(), path);
  expect(magic === 'ELF', `the client begins with ${magic}`);
  expect((await downloads.getByRole('link', { name: 'Company client' }).getAttribute('href')) === 'https://www.example.com/oc', 'the link of the extension differs');
  expect((await downloads.getByText('Bad').count()) === 0, 'the page links to a script');
  await page.locator('html[data-color="teal"]').waitFor();
  const color = await page.locator('.console-brand').evaluate((brand) => getComputedStyle(brand).textDecorationColor);
  expect(color === 'rgb(1, 2, 3)', `the brand is ${color}`);
  await shoot(page, 'command-line');
  const rejected = await page.evaluate(
    () =>
      new Promise((resolve) => {
        document.addEventListener('securitypolicyviolation', (event) => resolve(event.blockedURI), { once: true });
        document.head.append(Object.assign(document.createElement('script'), { src: 'https://www.example.com/other.js' }));
      }),
  );
  expect(rejected === 'https://www.example.com/other.js' && !(await page.evaluate(() => window.intruded)), `the policy rejects ${rejected}`);

  // The help menu links to the downloads.
  await page.goto(`${master}/console/project/${project}/monitoring`);
  await page.getByRole('link', { name: 'Log archive' }).waitFor();
  expect((await page.getByRole('link', { name: 'Metrics' }).getAttribute('href')) === 'https://metrics.example.com/', 'the link to the metrics differs');
  await page.getByRole('button', { name: 'Help' }).click();
  expect((await page.getByRole('menuitem', { name: 'Handbook' }).getAttribute('href')) === 'https://www.example.com/handbook', 'the help menu has no link of the extension');
  expect((await page.getByRole('menuitem').count()) === 4, 'the help menu has a link that is not an address');
  await page.getByRole('menuitem', { name: 'Command line tools' }).click();
  await downloads.waitFor();

  // The extension's page uses the API with the user's permissions, and displays the reason if a
  // request fails.
  await page.goto(`${master}/console/project/${project}/services`);
  const navigation = page.getByRole('navigation', { name: 'Navigation' });
  await navigation.getByRole('link', { name: 'Costs' }).click();
  await page.getByRole('heading', { name: 'Costs', level: 1 }).waitFor();
  await page.getByText('front costs 5 EUR').waitFor();
  await page.getByText('services "none" not found').waitFor();
  expect((await navigation.getByRole('link', { name: 'Broken' }).count()) === 0, 'the navigation has a page without a valid address');
  await check(page, 'extension');
  await navigation.getByRole('link', { name: 'Overview' }).click();
  await page.locator(`html[data-left="${project}"]`).waitFor();
  await page.goto(`${master}/console/project/${project}/extension/none`);
  await page.getByRole('heading', { name: 'This does not exist', level: 1 }).waitFor();
  await customize(page);
  expect(sockets.length > 0 && sockets.every((host) => host === new URL(master).host), `the sockets are ${sockets}`);

  // The console displays a JVM's beans and threads. Its requests pass through the API server.
  await page.goto(`${master}/console/project/${project}/pods/front-java`);
  await page.getByText('Running', { exact: true }).first().waitFor();
  await page.getByRole('link', { name: 'Connect' }).click();
  const bean = page.getByRole('combobox', { name: 'Bean' });
  await bean.selectOption('java.lang:type=Memory');
  await page.getByRole('gridcell', { name: /"used": 1048576/ }).or(page.getByRole('cell', { name: /"used": 1048576/ })).waitFor();
  await page.getByRole('button', { name: 'Run gc()' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('The result of gc()').waitFor();
  await page.getByRole('button', { name: 'Run reserve(long,java.lang.String)' }).click();
  await page.getByLabel('bytes (long)').fill('many');
  await page.getByLabel('reason (java.lang.String)').fill('test');
  await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('many is not a number').waitFor();
  await page.getByLabel('bytes (long)').fill('64');
  await check(page, 'java-operation');
  await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('64 bytes for test').waitFor();
  await page.getByRole('button', { name: 'Set Verbose' }).click();
  expect((await page.getByLabel('Value (boolean)').inputValue()) === 'false', 'the dialog has another value');
  await page.getByLabel('Value (boolean)').fill('true');
  await page.getByRole('dialog').getByRole('button', { name: 'Set', exact: true }).click();
  await page.getByRole('row', { name: /^Verbose true / }).waitFor();
  await shoot(page, 'java');
  await page.getByRole('button', { name: 'Threads' }).click();
  await page.getByRole('button', { name: /^main RUNNABLE/ }).click();
  await page.getByText('com.example.Main.run (Main.java:7)').waitFor();
  await page.getByRole('button', { name: 'Camel' }).click();
  await page.getByRole('heading', { name: 'org.apache.camel:type=context' }).waitFor();

  // An inactive user is logged out. The test advances the browser's clock.
  await page.clock.install();
  await page.goto(`${master}/console/projects`);
  await page.getByRole('heading', { name: 'Projects', level: 1 }).waitFor();
  await page.clock.fastForward('14:40');
  await page.getByRole('dialog').getByText('Are you still there?').waitFor();
  await page.clock.fastForward('00:30');
  await page.getByRole('heading', { name: 'Goodbye' }).waitFor();
  await page.goto(`${master}/console/projects`);
  await page.locator('input[name="password"]').waitFor();
  // The console first tries TLS, which the pod's agent does not use.
}, { expected: /Content Security Policy|status of 50\d/, args: [`--host-resolver-rules=MAP master.example.com ${server}`] });
