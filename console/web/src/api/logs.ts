import { send } from './http';
import { Store } from './store';

/** LogState is the content that a log stream has received. */
export interface LogState {
  lines: string[];
  /** dropped is the number of lines that the page no longer keeps. */
  dropped: number;
  ended: boolean;
  error?: Error;
}

/** maxLines is the maximum number of lines that the page keeps. */
export const maxLines = 20_000;

/** LogStream reads a log as it grows. */
export class LogStream extends Store<LogState> {
  private readonly abort = new AbortController();
  private lines: string[] = [];
  private dropped = 0;
  private rest = '';
  private flushing = false;

  constructor(private readonly path: string) {
    super({ lines: [], dropped: 0, ended: false });
  }

  /** run reads until the log ends or close is called. */
  async run(): Promise<void> {
    try {
      const response = await send('GET', this.path, undefined, { accept: '*/*', signal: this.abort.signal });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const chunk = await reader?.read();
        if (!chunk || chunk.done) {
          break;
        }
        this.add(chunk.value);
      }
      this.publish({ ended: true });
    } catch (error) {
      if (!this.abort.signal.aborted) {
        this.publish({ ended: true, error: error as Error });
      }
    }
  }

  close(): void {
    this.abort.abort();
  }

  private add(chunk: string): void {
    const parts = (this.rest + chunk).split('\n');
    this.rest = parts.pop() ?? '';
    for (const part of parts) {
      this.lines.push(part);
    }
    if (this.lines.length > maxLines) {
      this.dropped += this.lines.length - maxLines;
      this.lines = this.lines.slice(-maxLines);
    }
    if (!this.flushing) {
      this.flushing = true;
      requestAnimationFrame(() => {
        this.flushing = false;
        this.publish({});
      });
    }
  }

  private publish(change: Partial<LogState>): void {
    const lines = this.rest === '' ? [...this.lines] : [...this.lines, this.rest];
    this.set({ ...this.get(), lines, dropped: this.dropped, ...change });
  }
}
