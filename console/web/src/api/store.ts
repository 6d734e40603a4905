import { useSyncExternalStore } from 'react';

/** Store holds a value that components observe. */
export class Store<T> {
  private observers = new Set<() => void>();

  constructor(private value: T) {}

  get = (): T => this.value;

  set(value: T): void {
    if (!Object.is(value, this.value)) {
      this.value = value;
      this.observers.forEach((observer) => observer());
    }
  }

  subscribe = (observer: () => void): (() => void) => {
    this.observers.add(observer);
    return () => this.observers.delete(observer);
  };
}

/** useStore returns a store's value, and renders the component again when the value changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** Joined is a store that contains the values of several stores. */
export class Joined<T> extends Store<T[]> {
  constructor(parts: Store<T>[]) {
    super(parts.map((part) => part.get()));
    const refresh = () => {
      if (parts.some((part, index) => part.get() !== this.get()[index])) {
        this.set(parts.map((part) => part.get()));
      }
    };
    const observe = this.subscribe;
    this.subscribe = (observer) => {
      const stops = [observe(observer), ...parts.map((part) => part.subscribe(refresh))];
      refresh();
      return () => stops.forEach((stop) => stop());
    };
  }
}
