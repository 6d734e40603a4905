import { text } from '../text/en';
import { proxy } from './http';

/** execProtocol is the WebSocket protocol for commands. */
export const execProtocol = 'v5.channel.k8s.io';

/**
 * channels contains the protocol's channels. The first byte of each message is its channel. The
 * close channel closes another channel.
 */
export const channels = { stdin: 0, stdout: 1, stderr: 2, status: 3, resize: 4, close: 255 } as const;

/** execURL returns the address for a command in a pod's container. */
export function execURL(namespace: string, pod: string, query: URLSearchParams): string {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec`;
  return `wss://${location.host}${proxy}${path}?${query}`;
}

/** SessionOptions describes a command, where it runs, and what receives its output. */
export interface SessionOptions {
  namespace: string;
  pod: string;
  container: string;
  command: string[];
  output: (data: Uint8Array) => void;
  /**
   * ended is called with the reason when the session ends, or without a reason if the command
   * succeeded.
   */
  ended: (reason?: string) => void;
}

/** ExecSession is a command that runs in a container with a terminal. */
export class ExecSession {
  private readonly socket: WebSocket;
  private reason?: string;

  constructor(options: SessionOptions) {
    const query = new URLSearchParams({ container: options.container, stdin: 'true', stdout: 'true', tty: 'true' });
    options.command.forEach((word) => query.append('command', word));
    this.socket = new WebSocket(execURL(options.namespace, options.pod, query), execProtocol);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onmessage = (message) => {
      const data = new Uint8Array(message.data as ArrayBuffer);
      if (data[0] === channels.stdout || data[0] === channels.stderr) {
        options.output(data.subarray(1));
      } else if (data[0] === channels.status) {
        this.reason = failureOf(new TextDecoder().decode(data.subarray(1)));
      }
    };
    this.socket.onclose = (event) => options.ended(this.reason ?? (event.wasClean ? undefined : text.failure.closed));
  }

  /** write sends text that the user typed. */
  write(text: string): void {
    this.send(channels.stdin, new TextEncoder().encode(text));
  }

  /** resize sends the terminal's size. */
  resize(columns: number, rows: number): void {
    this.send(channels.resize, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows })));
  }

  /** onOpen calls a function when the session has started. */
  onOpen(run: () => void): void {
    this.socket.addEventListener('open', run);
  }

  close(): void {
    this.socket.close();
  }

  private send(channel: number, data: Uint8Array): void {
    if (this.socket.readyState !== WebSocket.OPEN) {
      return;
    }
    const message = new Uint8Array(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    this.socket.send(message);
  }
}

/** failureOf returns the message of a Status that reports a failure. */
export function failureOf(content: string): string | undefined {
  try {
    const result = JSON.parse(content) as { status?: string; message?: string };
    return result.status === 'Success' ? undefined : result.message;
  } catch {
    return content;
  }
}
