import { persistentFetch } from './fetch';
import { Store } from './store';

/** State specifies whether the browser has a session. */
export type State = 'unknown' | 'active' | 'expired' | 'ended';

/**
 * loginPath returns the path that starts a login. After the login, the browser returns to the given
 * path.
 */
export function loginPath(then: string): string {
  return '/console/login?' + new URLSearchParams({ then });
}

/** channelName is the channel on which a browser's windows notify each other about the session. */
export const channelName = 'slipway-console';

/** Message is a message from one window to the browser's other windows. */
export type Message = 'signed in' | 'logged out';

/** tell sends a message to all windows of the browser. */
export function tell(message: Message): void {
  const channel = new BroadcastChannel(channelName);
  channel.postMessage(message);
  channel.close();
}

/**
 * Session is the browser's session. The access token is in a cookie that scripts cannot read.
 * Scripts have only the CSRF value, which every request must repeat.
 */
class Session extends Store<State> {
  csrf = '';

  /** load requests the session, and returns whether the browser has one. */
  async load(): Promise<boolean> {
    const isActive = await this.read();
    if (isActive) {
      this.set('active');
    }
    return isActive;
  }

  /** read requests the session in the same way as load, but does not activate it for pages. */
  async read(): Promise<boolean> {
    const response = await persistentFetch('/console/session', { headers: { Accept: 'application/json' } });
    if (!response.ok) {
      return false;
    }
    this.csrf = ((await response.json()) as { csrf: string }).csrf;
    return true;
  }

  /**
   * expire records that the API no longer accepts the session. Pages keep the text that the user
   * has typed.
   */
  expire(): void {
    if (this.get() === 'active') {
      this.set('expired');
    }
  }

  /** end deletes the token on the server and ends the session. */
  async end(): Promise<void> {
    const response = await persistentFetch('/console/logout', { method: 'POST', headers: { 'X-CSRF-Token': this.csrf } });
    if (!response.ok) {
      throw new Error(await response.text());
    }
    this.csrf = '';
    this.set('ended');
  }
}

export const session = new Session('unknown');
