/**
 * attempts and firstDelay are large enough for a request to survive a change of the network devices
 * on the browser's machine. firstDelay is in milliseconds.
 */
const attempts = 6;
const firstDelay = 150;

/**
 * persist calls a function. As long as the function fails with an error that permits a retry,
 * persist calls it again after an increasing delay.
 */
export async function persist<T>(run: () => Promise<T>, isRepeatable: (error: unknown) => boolean): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (attempt === attempts || !isRepeatable(error)) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, firstDelay * 2 ** (attempt - 1)));
    }
  }
}

/**
 * persistentFetch is fetch for requests that the server can safely receive twice. It retries if the
 * network fails: a browser on a node aborts its requests whenever a pod starts there, because the
 * machine's network devices change.
 */
export function persistentFetch(address: string, init: RequestInit): Promise<Response> {
  return persist(
    () => fetch(address, init),
    (error) => error instanceof TypeError && !init.signal?.aborted,
  );
}
