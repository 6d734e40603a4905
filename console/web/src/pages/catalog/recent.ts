import type { Item } from '../../api/catalog';

const key = 'recent';
const maxRecent = 3;

/** Recent contains the paths of the tiles that a user has opened most recently. */
interface Recent {
  user: string;
  paths: string[];
}

function stored(user: string | undefined): string[] {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? '{}') as Partial<Recent>;
    return value.user === user && Array.isArray(value.paths) ? value.paths.filter((path) => typeof path === 'string') : [];
  } catch {
    return [];
  }
}

/** recentItems returns the tiles that a user has opened most recently in this browser. */
export function recentItems(items: Item[], user: string | undefined): Item[] {
  return stored(user)
    .map((path) => items.find((item) => item.path === path))
    .filter((item) => item !== undefined);
}

/** remember records that a user has opened a tile. It discards another user's tiles. */
export function remember(item: Item, user: string): void {
  const paths = [item.path, ...stored(user).filter((path) => path !== item.path)].slice(0, maxRecent);
  const recent: Recent = { user, paths };
  localStorage.setItem(key, JSON.stringify(recent));
}
