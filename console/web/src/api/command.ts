import { channels, execProtocol, execURL, failureOf } from './exec';

/** Output is the output of a command. */
export interface Output {
  stdout: Uint8Array<ArrayBuffer>;
  stderr: string;
}

/** CommandOptions describe a command and where it runs. limit is its maximum output, in bytes. */
export interface CommandOptions {
  namespace: string;
  pod: string;
  container: string;
  command: string[];
  stdin?: Uint8Array;
  limit: number;
}

/** OutputTooLarge means that a command has exceeded its output limit. */
export class OutputTooLarge extends Error {}

const chunkSize = 64 << 10;
const maxBuffered = 1 << 20;
const drainInterval = 20;

/**
 * runCommand runs a command in a container without a terminal. It throws the error that a failure
 * reports.
 */
export function runCommand({ namespace, pod, container, command, stdin, limit }: CommandOptions): Promise<Output> {
  return new Promise((resolve, reject) => {
    const query = new URLSearchParams({ container, stdin: String(stdin !== undefined), stdout: 'true', stderr: 'true' });
    command.forEach((word) => query.append('command', word));
    const socket = new WebSocket(execURL(namespace, pod, query), execProtocol);
    socket.binaryType = 'arraybuffer';
    const parts: Uint8Array[] = [];
    const errors: Uint8Array[] = [];
    let size = 0;
    let failure: string | undefined = 'the connection was closed';
    socket.onopen = () => void (stdin && sendAll(socket, stdin));
    socket.onmessage = (message) => {
      const data = new Uint8Array(message.data as ArrayBuffer);
      const content = data.subarray(1);
      const list = data[0] === channels.stdout ? parts : data[0] === channels.stderr ? errors : undefined;
      if (list) {
        size += content.length;
        if (size > limit) {
          reject(new OutputTooLarge());
          socket.close();
          return;
        }
        list.push(content);
      } else if (data[0] === channels.status) {
        failure = failureOf(new TextDecoder().decode(content));
      }
    };
    socket.onclose = () => {
      const stderr = new TextDecoder().decode(concat(errors));
      if (failure === undefined) {
        resolve({ stdout: concat(parts), stderr });
      } else {
        reject(new Error(stderr.trim() || failure));
      }
    };
  });
}

/** sendAll sends the standard input, no faster than the network accepts it, and closes it. */
async function sendAll(socket: WebSocket, stdin: Uint8Array): Promise<void> {
  for (let start = 0; start < stdin.length && socket.readyState === WebSocket.OPEN; start += chunkSize) {
    while (socket.bufferedAmount > maxBuffered) {
      await new Promise((resolve) => setTimeout(resolve, drainInterval));
    }
    socket.send(concat([new Uint8Array([channels.stdin]), stdin.subarray(start, start + chunkSize)]));
  }
  socket.send(new Uint8Array([channels.close, channels.stdin]));
}

function concat(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
