/**
 * attempts and firstDelay are large enough that a request survives the change of a network device
 * in a browser.
 */
const attempts = 6;
const firstDelay = 150;

/**
 * persist repeats a run, with growing delays, while it fails with an error that permits a
 * repetition.
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
 * persistentFetch is fetch for requests that can safely reach the server twice. It retries when
 * the network fails: a browser on a node aborts its requests whenever a pod starts there, because
 * the network devices of the machine change.
 */
export function persistentFetch(address: string, init: RequestInit): Promise<Response> {
  return persist(
    () => fetch(address, init),
    (error) => error instanceof TypeError && !init.signal?.aborted,
  );
}
