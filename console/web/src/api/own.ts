/**
 * own returns a table's value for a key, or undefined. Another user might have chosen the key. Keys
 * such as constructor and __proto__ exist in every object, so own ignores inherited keys.
 */
export function own<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
