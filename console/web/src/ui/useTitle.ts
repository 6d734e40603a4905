import { useEffect } from 'react';
import { text } from '../text/en';

/** useTitle sets the title of the window. */
export function useTitle(...parts: (string | undefined)[]): void {
  const title = [...parts.filter((part) => part !== undefined), text.product].join(' · ');
  useEffect(() => {
    document.title = title;
  }, [title]);
}
