import { text } from '../text/en';
import { channels, execProtocol, execURL, failureOf } from './exec';

/** Output is the output of a command. */
export interface Output {
  stdout: Blob;
  stderr: string;
}

/** CommandOptions describes a command and where it runs. */
export interface CommandOptions {
  namespace: string;
  pod: string;
  container: string;
  command: string[];
  stdin?: Blob;
  /** progress receives the number of bytes that the command has read or written. */
  progress?: (bytes: number) => void;
  /** signal closes the connection. */
  signal?: AbortSignal;
}

const chunkSize = 64 << 10;
const maxBuffered = 1 << 20;
const drainInterval = 20;

/**
 * maxLoose is the maximum size of the output in the page's memory, in bytes. Larger output is moved
 * to a blob, because browsers store large blobs on disk.
 */
const maxLoose = 8 << 20;

/** maxErrors is the maximum length of a command's standard error, in bytes. */
const maxErrors = 64 << 10;

/**
 * runCommand runs a command in a container without a terminal. If the command fails, runCommand
 * throws an error.
 */
export function runCommand({ namespace, pod, container, command, stdin, progress, signal }: CommandOptions): Promise<Output> {
  return new Promise((resolve, reject) => {
    const query = new URLSearchParams({ container, stdin: String(stdin !== undefined), stdout: 'true', stderr: 'true' });
    command.forEach((word) => query.append('command', word));
    const socket = new WebSocket(execURL(namespace, pod, query), execProtocol);
    socket.binaryType = 'arraybuffer';
    const output = new Collected();
    const errors: BlobPart[] = [];
    let errorSize = 0;
    let failure: string | undefined = text.failure.closed;
    const fail = (cause: unknown) => {
      reject(cause instanceof Error ? cause : new Error(String(cause)));
      socket.close();
    };
    signal?.addEventListener('abort', () => fail(signal.reason));
    socket.onopen = () => void (stdin && sendAll(socket, stdin, progress).catch(fail));
    socket.onmessage = (message) => {
      const data = new Uint8Array(message.data as ArrayBuffer);
      const content = data.subarray(1);
      if (data[0] === channels.stdout) {
        output.add(content);
        if (!stdin) {
          progress?.(output.size);
        }
      } else if (data[0] === channels.stderr && errorSize < maxErrors) {
        errorSize += content.length;
        errors.push(content);
      } else if (data[0] === channels.status) {
        failure = failureOf(new TextDecoder().decode(content));
      }
    };
    socket.onclose = async () => {
      const stderr = await new Blob(errors).text();
      if (failure === undefined) {
        resolve({ stdout: output.blob(), stderr });
      } else {
        reject(new Error(stderr.trim() || failure));
      }
    };
  });
}

/** Collected stores the output of a command while the command runs. */
class Collected {
  size = 0;
  private stored = new Blob();
  private loose: BlobPart[] = [];
  private looseSize = 0;

  add(content: Uint8Array<ArrayBuffer>): void {
    this.size += content.length;
    this.looseSize += content.length;
    this.loose.push(content);
    if (this.looseSize > maxLoose) {
      this.blob();
    }
  }

  blob(): Blob {
    this.stored = new Blob([this.stored, ...this.loose]);
    this.loose = [];
    this.looseSize = 0;
    return this.stored;
  }
}

/** sendAll sends the standard input, no faster than the network accepts it, and then closes it. */
async function sendAll(socket: WebSocket, stdin: Blob, progress?: (bytes: number) => void): Promise<void> {
  for (let start = 0; start < stdin.size && socket.readyState === WebSocket.OPEN; start += chunkSize) {
    while (socket.bufferedAmount > maxBuffered) {
      await new Promise((resolve) => setTimeout(resolve, drainInterval));
    }
    const end = Math.min(start + chunkSize, stdin.size);
    socket.send(await new Blob([new Uint8Array([channels.stdin]), stdin.slice(start, end)]).arrayBuffer());
    progress?.(end);
  }
  socket.send(new Uint8Array([channels.close, channels.stdin]));
}
