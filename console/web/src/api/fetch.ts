/** attempts and firstDelay let a request outlast what a browser does when a network device changes. */
const attempts = 6;
const firstDelay = 150;

/**
 * persistentFetch is fetch for requests that may reach the server twice. It tries again when the
 * network fails: a browser on a node aborts its requests whenever a pod starts there, because the
 * network devices of the machine change.
 */
export async function persistentFetch(address: string, init: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fetch(address, init);
    } catch (error) {
      if (!(error instanceof TypeError) || init.signal?.aborted || attempt === attempts) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, firstDelay * 2 ** (attempt - 1)));
    }
  }
}
