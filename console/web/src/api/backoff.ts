import { session } from './session';

const minDelay = 250;
const maxDelay = 5_000;

/** Backoff delays attempts to reconnect. */
export class Backoff {
  private delay = minDelay;

  /** reset makes the next delay short. It is called after a successful attempt. */
  reset(): void {
    this.delay = minDelay;
  }

  /**
   * pause waits before the next attempt, longer each time. If the session has expired, it also
   * waits for a new login.
   */
  async pause(): Promise<void> {
    if (session.get() !== 'active') {
      await new Promise<void>((resolve) => {
        const stop = session.subscribe(() => {
          if (session.get() === 'active') {
            stop();
            resolve();
          }
        });
      });
    }
    const delay = this.delay * (0.75 + Math.random() / 2);
    this.delay = Math.min(this.delay * 2, maxDelay);
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
}
