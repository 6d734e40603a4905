import { config } from '../api/config';
import { session, tell } from '../api/session';

/** leave opens the page for users who have logged out. */
export function leave(): void {
  location.assign(config.get().clusterInfo.logoutPublicURL || '/console/logged-out');
}

/** reload loads the page again, without its data. */
export function reload(): void {
  location.reload();
}

/**
 * logOut ends the session, and opens another page in all windows, because the windows show the
 * user's data.
 */
export function logOut(): void {
  void session.end().finally(() => {
    tell('logged out');
    leave();
  });
}
