import { Store } from '../api/store';
import { startsTour } from './constants';

/** touring indicates whether the catalog shows its tour. */
export const touring = new Store(false);

const key = 'toured';

/**
 * startOnce starts the tour on the user's first visit with this browser, if scripts have enabled
 * this.
 */
export function startOnce(): void {
  if (startsTour() && localStorage.getItem(key) === null) {
    localStorage.setItem(key, 'true');
    touring.set(true);
  }
}
