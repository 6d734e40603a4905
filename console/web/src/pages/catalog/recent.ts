import type { Item } from '../../api/catalog';

const key = 'recent';
const maxRecent = 3;

function stored(): string[] {
  try {
    const value = JSON.parse(localStorage.getItem(key) ?? '[]') as unknown;
    return Array.isArray(value) ? value.filter((path): path is string => typeof path === 'string') : [];
  } catch {
    return [];
  }
}

/** recentItems returns the tiles that were opened last in this browser. */
export function recentItems(items: Item[]): Item[] {
  return stored()
    .map((path) => items.find((item) => item.path === path))
    .filter((item) => item !== undefined);
}

/** remember records that a tile was opened. */
export function remember(item: Item): void {
  const paths = [item.path, ...stored().filter((path) => path !== item.path)].slice(0, maxRecent);
  localStorage.setItem(key, JSON.stringify(paths));
}
