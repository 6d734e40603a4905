import type { Config } from '../api/config';
import { constant, defineConstants, isURL } from './constants';

declare global {
  interface Window {
    /**
     * OPENSHIFT_EXTENSION_PROPERTIES contains the properties that the administrator has set for
     * scripts.
     */
    OPENSHIFT_EXTENSION_PROPERTIES?: Record<string, string>;
  }
}

/** ExtensionPage is a page that a script adds. */
export interface ExtensionPage {
  /** path is the last part of the page's address: lower-case letters, digits and dashes. */
  path: string;
  /** title is the page's heading, and its name in the navigation. */
  title: string;
  /**
   * scope is project for a page in each project, or cluster for a single page. It defaults to
   * project.
   */
  scope?: 'project' | 'cluster';
  /** render fills an empty element. If render throws or rejects, the page shows the error. */
  render: (element: HTMLElement, context: ExtensionContext) => unknown;
}

/** ExtensionContext contains the values that a script's page can use. */
export interface ExtensionContext {
  /** project is the page's project. It is undefined for a page with cluster scope. */
  project?: string;
  /** signal is aborted when the user leaves the page. */
  signal: AbortSignal;
  /**
   * request sends a request to the API with the user's permissions, and returns the object in the
   * response.
   */
  request: (method: string, path: string, body?: unknown) => Promise<unknown>;
}

/** loadTimeout is the maximum time that the console waits for extensions. */
const loadTimeout = 5000;

let finish: () => void = () => undefined;

/** extensionsLoaded resolves when the extensions' scripts have set the constants. */
export const extensionsLoaded = new Promise<void>((resolve) => {
  finish = resolve;
});

/**
 * loadExtensions loads the administrator's scripts and style sheets. It returns when all of them
 * are loaded or have failed, or when the timeout has expired.
 */
export async function loadExtensions({ extensions }: Config): Promise<void> {
  window.OPENSHIFT_EXTENSION_PROPERTIES = extensions.properties ?? {};
  defineConstants();
  const sheets = (extensions.stylesheetURLs ?? []).map((href) => insert(Object.assign(document.createElement('link'), { rel: 'stylesheet', href })));
  // With async set to false, the scripts run in the configured order.
  const scripts = (extensions.scriptURLs ?? []).map((src) => insert(Object.assign(document.createElement('script'), { src, async: false })));
  const timeout = new Promise((resolve) => setTimeout(resolve, loadTimeout));
  await Promise.race([Promise.all([...sheets, ...scripts]), timeout]);
  finish();
}

function insert(element: HTMLElement): Promise<void> {
  return new Promise((resolve) => {
    element.onload = () => resolve();
    element.onerror = () => resolve();
    document.head.append(element);
  });
}

type Links = [name: string, address: string][];

/** linksOf returns the links that scripts have set. It omits values that are not addresses. */
function linksOf(links: unknown): Links {
  return Object.entries(links ?? {}).filter((entry): entry is [string, string] => isURL(entry[1]));
}

/** clientLinks returns the links to command line clients. */
export const clientLinks = (): Links => linksOf(constant('CLI'));

/** helpLinks returns the links in the help menu. */
export const helpLinks = (): Links => linksOf(constant('HELP'));

/** isPage reports whether a script has set all required fields of a page. */
function isPage(page: Partial<ExtensionPage> | null): page is ExtensionPage {
  return typeof page?.path === 'string' && /^[a-z0-9-]+$/.test(page.path) && typeof page.title === 'string' && page.title !== '' && typeof page.render === 'function';
}

/** extensionPages returns the pages that scripts add to projects, or to the cluster. */
export function extensionPages(scope: 'project' | 'cluster'): ExtensionPage[] {
  const pages = constant('PAGES');
  return (Array.isArray(pages) ? pages : []).filter(isPage).filter((page) => (page.scope ?? 'project') === scope);
}
