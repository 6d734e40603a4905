// A user views the layers of a tag's images.
import { logIn, open } from './browser.mjs';

const [project] = process.argv.slice(2);

await open(async (page) => {
  await logIn(page, 'developer', `/console/project/${project}/imagestreams.image.openshift.io/app`);
  await page.getByRole('button', { name: 'Layers of latest' }).click();
  const layers = page.getByRole('region', { name: /^Layers of sha256:/ });
  await layers.getByText('run --it').waitFor();
  await layers.getByText('2 layers, 3.0 MiB').waitFor();
  await layers.getByRole('button', { name: 'Close' }).click();
  await layers.waitFor({ state: 'detached' });

  // This image is an earlier image of the tag.
  await page.getByRole('button', { name: 'Earlier images of latest' }).click();
  await page.getByRole('button', { name: /^Layers of sha256:1111/ }).click();
  await page.getByRole('region', { name: /^Layers of sha256:1111/ }).getByText('2 layers, 3.0 MiB').waitFor();
});
