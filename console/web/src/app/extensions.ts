import type { Config } from '../api/config';

declare global {
  interface Window {
    /**
     * OPENSHIFT_EXTENSION_PROPERTIES are the properties that the administrator has set for scripts.
     */
    OPENSHIFT_EXTENSION_PROPERTIES?: Record<string, string>;
    /**
     * OPENSHIFT_CONSTANTS are what scripts can change. CLI maps the names of downloads to addresses, and
     * HELP those of entries of the help menu. PAGES are further pages.
     */
    OPENSHIFT_CONSTANTS?: { CLI?: Record<string, string>; HELP?: Record<string, string>; PAGES?: ExtensionPage[] };
  }
}

/** ExtensionPage is a page of a script. */
export interface ExtensionPage {
  /** path is the last part of the page's address: lower-case letters, digits and dashes. */
  path: string;
  /** title is the heading of the page, and its name in the navigation. */
  title: string;
  /** scope is project for a page of each project, which is the default, or cluster. */
  scope?: 'project' | 'cluster';
  /** render fills an empty element. If it throws or rejects, the page shows the error. */
  render: (element: HTMLElement, context: ExtensionContext) => unknown;
}

/** ExtensionContext is what a page of a script can use. */
export interface ExtensionContext {
  /** project is the project of the page. A page of the cluster has none. */
  project?: string;
  /** signal is aborted when the user leaves the page. */
  signal: AbortSignal;
  /** request sends a request to the API with the rights of the user, and returns the object of the response. */
  request: (method: string, path: string, body?: unknown) => Promise<unknown>;
}

/** loadTimeout limits how long the console waits for an extension. */
const loadTimeout = 5000;

/**
 * loadExtensions loads the scripts and style sheets of the administrator. The console starts when
 * all are loaded or have failed, and does not wait longer than the timeout.
 */
export async function loadExtensions({ extensions }: Config): Promise<void> {
  window.OPENSHIFT_EXTENSION_PROPERTIES = extensions.properties ?? {};
  window.OPENSHIFT_CONSTANTS ??= {};
  const sheets = (extensions.stylesheetURLs ?? []).map((href) => insert(Object.assign(document.createElement('link'), { rel: 'stylesheet', href })));
  // Scripts run in their order.
  const scripts = (extensions.scriptURLs ?? []).map((src) => insert(Object.assign(document.createElement('script'), { src, async: false })));
  const timeout = new Promise((resolve) => setTimeout(resolve, loadTimeout));
  await Promise.race([Promise.all([...sheets, ...scripts]), timeout]);
}

function insert(element: HTMLElement): Promise<void> {
  return new Promise((resolve) => {
    element.onload = () => resolve();
    element.onerror = () => resolve();
    document.head.append(element);
  });
}

type Links = [name: string, address: string][];

/** linksOf returns the links that scripts have set, without those that are not addresses. */
function linksOf(links: Record<string, string> | undefined): Links {
  return Object.entries(links ?? {}).filter(([, address]) => typeof address === 'string' && /^https?:\/\//.test(address));
}

/** clientLinks are links to command line clients. */
export const clientLinks = (): Links => linksOf(window.OPENSHIFT_CONSTANTS?.CLI);

/** helpLinks are links of the help menu. */
export const helpLinks = (): Links => linksOf(window.OPENSHIFT_CONSTANTS?.HELP);

/** isPage reports whether a script has set all that a page needs. */
function isPage(page: Partial<ExtensionPage> | null): page is ExtensionPage {
  return typeof page?.path === 'string' && /^[a-z0-9-]+$/.test(page.path) && typeof page.title === 'string' && page.title !== '' && typeof page.render === 'function';
}

/** extensionPages are the pages of scripts for projects, or for the cluster. */
export function extensionPages(scope: 'project' | 'cluster'): ExtensionPage[] {
  const pages: unknown = window.OPENSHIFT_CONSTANTS?.PAGES;
  return (Array.isArray(pages) ? pages : []).filter(isPage).filter((page) => (page.scope ?? 'project') === scope);
}
