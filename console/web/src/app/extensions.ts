import type { Config } from '../api/config';

declare global {
  interface Window {
    /** OPENSHIFT_EXTENSION_PROPERTIES are the properties that the administrator has set for scripts. */
    OPENSHIFT_EXTENSION_PROPERTIES?: Record<string, string>;
    /** OPENSHIFT_CONSTANTS are what scripts can change. CLI maps the names of downloads to addresses. */
    OPENSHIFT_CONSTANTS?: { CLI?: Record<string, string> };
  }
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

/** clientLinks are the links to clients that scripts have set, without those that are not addresses. */
export function clientLinks(): [name: string, address: string][] {
  return Object.entries(window.OPENSHIFT_CONSTANTS?.CLI ?? {}).filter(([, address]) => typeof address === 'string' && /^https?:\/\//.test(address));
}
