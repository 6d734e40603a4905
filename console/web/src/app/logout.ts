import { config } from '../api/config';
import { session, tell } from '../api/session';

/** leave opens the page for users who are logged out. */
export function leave(): void {
  location.assign(config.get().clusterInfo.logoutPublicURL || '/console/logged-out');
}

/** logOut ends the session. All windows are left, because they show the user's data. */
export function logOut(): void {
  void session.end().finally(() => {
    tell('logged out');
    leave();
  });
}
