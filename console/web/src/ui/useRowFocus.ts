import { useRef } from 'react';

/**
 * useRowFocus keeps the focus in a list of rows when the user removes the last row, and with it the
 * focused button. The list's keys are the indexes of its rows.
 */
export function useRowFocus<Field extends HTMLElement>() {
  const fields = useRef<(Field | null)[]>([]);
  return {
    /** first returns the ref of a row's first field. */
    first: (index: number) => (field: Field | null) => {
      fields.current[index] = field;
    },
    /** leave moves the focus to the previous row if the removed row is the last of count rows. */
    leave: (index: number, count: number) => {
      if (index === count - 1) {
        fields.current[Math.max(0, index - 1)]?.focus();
      }
    },
  };
}
