import { persistentFetch } from './fetch';
import { Store } from './store';

/** Download is a command line client that the server offers. */
export interface Download {
  system: string;
  architecture: string;
  path: string;
  bytes: number;
}

/** Config contains the settings in the webconsole-config ConfigMap. */
export interface Config {
  /** masterURL is the API server's address for clients. */
  masterURL: string;
  clusterInfo: { loggingPublicURL: string; metricsPublicURL: string; logoutPublicURL: string; adminConsolePublicURL: string };
  /**
   * inactivityTimeoutMinutes is how long a user can be inactive before the session ends. 0 means
   * that the session never ends.
   */
  inactivityTimeoutMinutes: number;
  extensions: { scriptURLs: string[] | null; stylesheetURLs: string[] | null; properties: Record<string, string> | null };
  downloads: Download[] | null;
}

/** config contains the console's configuration. */
export const config = new Store<Config>({
  masterURL: location.origin,
  clusterInfo: { loggingPublicURL: '', metricsPublicURL: '', logoutPublicURL: '', adminConsolePublicURL: '' },
  inactivityTimeoutMinutes: 0,
  extensions: { scriptURLs: [], stylesheetURLs: [], properties: {} },
  downloads: [],
});

/** loadConfig reads the configuration. If the server does not send one, the defaults apply. */
export async function loadConfig(): Promise<void> {
  const response = await persistentFetch('/console/config.json', { headers: { Accept: 'application/json' } });
  if (response.ok) {
    config.set((await response.json()) as Config);
  }
}
