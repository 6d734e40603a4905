import { persist } from '../api/fetch';
import { text } from '../text/en';

/** LoadError means that the browser could not load a part of the console. */
export class LoadError extends Error {}

/** brokenSheets contains the page's style sheets that the browser could not load. */
const brokenSheets = new Set<HTMLLinkElement>();

/**
 * rememberBrokenSheets records the style sheets that could not be loaded. The next persistent load
 * requests them again.
 */
export function rememberBrokenSheets(): void {
  const isSheet = (target: unknown) => target instanceof HTMLLinkElement && target.rel === 'stylesheet';
  // Use a capturing listener, because the error event of a style sheet does not bubble.
  window.addEventListener('error', (event) => isSheet(event.target) && brokenSheets.add(event.target as HTMLLinkElement), true);
}

/** repairSheets requests the broken style sheets again. */
async function repairSheets(): Promise<void> {
  await Promise.all([...brokenSheets].map(repairSheet));
}

function repairSheet(broken: HTMLLinkElement): Promise<void> {
  return new Promise((resolve, reject) => {
    const link = broken.cloneNode() as HTMLLinkElement;
    link.onload = () => resolve();
    link.onerror = () => reject(new LoadError(link.href));
    brokenSheets.delete(broken); // if this request fails, the capturing listener adds the link again
    broken.replaceWith(link);
  });
}

/**
 * persistent returns a function that loads a console module, and retries if the network fails. A
 * retry alone would show a page without styles, because the module loader does not request a style
 * sheet twice.
 */
export function persistent<T>(load: () => Promise<T>): () => Promise<T> {
  const attempt = async () => {
    await repairSheets();
    const module = await load();
    await repairSheets();
    return module;
  };
  return () =>
    persist(attempt, () => true).catch((cause: Error) => {
      throw new LoadError(text.failure.load, { cause });
    });
}
