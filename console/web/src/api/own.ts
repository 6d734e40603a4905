/**
 * own returns a table's value for a key, or undefined. It ignores inherited keys, because another
 * user might have chosen the key, and keys such as constructor and __proto__ exist in every object.
 */
export function own<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
