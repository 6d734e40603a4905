import { useEffect } from 'react';
import { text } from '../text/en';

/** useTitle sets the window's title. */
export function useTitle(...parts: (string | undefined)[]): void {
  const title = [...parts.filter((part) => part !== undefined), text.product].join(' · ');
  useEffect(() => {
    document.title = title;
  }, [title]);
}
