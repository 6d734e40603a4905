/**
 * own returns the value of a table for a key that another user can have chosen, or undefined. Keys
 * such as constructor and __proto__ exist in every object.
 */
export function own<T>(table: Record<string, T>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}
