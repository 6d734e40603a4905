import type { Item } from '../../api/catalog';

/** filterItems returns the tiles that contain all words in a filter. */
export function filterItems(items: Item[], filter: string): Item[] {
  const words = filter.toLowerCase().split(/\s+/);
  return items.filter((item) => {
    const all = [item.title, item.description, item.provider, ...item.tags].join(' ').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
