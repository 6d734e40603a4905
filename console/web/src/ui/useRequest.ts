import { useState } from 'react';

/** RequestState is the state of a form's latest request. */
export interface RequestState {
  isBusy: boolean;
  /** isDone means that the request succeeded. */
  isDone: boolean;
  error?: Error;
}

const idle: RequestState = { isBusy: false, isDone: false };

/** useRequest tracks an action that waits for the server. reset clears the latest result. */
export function useRequest() {
  const [state, setState] = useState(idle);
  const run = async (action: () => Promise<unknown>) => {
    setState({ ...idle, isBusy: true });
    try {
      await action();
      setState({ ...idle, isDone: true });
    } catch (error) {
      setState({ ...idle, error: error as Error });
    }
  };
  return { ...state, send: (action: () => Promise<unknown>) => void run(action), reset: () => setState(idle) };
}
