import { config } from '../api/config';
import { session } from '../api/session';

/** logOut ends the session and opens the page for users who are logged out. */
export function logOut(): void {
  const page = config.get().clusterInfo.logoutPublicURL || '/console/logged-out';
  void session.end().finally(() => location.assign(page));
}
