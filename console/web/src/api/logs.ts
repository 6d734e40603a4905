import { Backoff } from './backoff';
import { ApiError, send } from './http';
import { Store } from './store';
import type { Connection } from './watch';

/** LogState is the content that a log stream has received. */
export interface LogState {
  lines: string[];
  /** dropped is the number of lines that the page no longer keeps. */
  dropped: number;
  ended: boolean;
  connection: Connection;
  error?: Error;
}

/** maxLines is the maximum number of lines that the page keeps. */
export const maxLines = 20_000;

/** Position is the time of the last line received, and the number of lines at that time. */
interface Position {
  time: string;
  count: number;
}

const timePattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d) /;

/**
 * timeOf returns the time that the server puts before a line. The alphabetical order of times is
 * their chronological order: they have no time zone, and the fraction of the second is the end.
 */
function timeOf(line: string): string | undefined {
  const [, second, fraction = '', zone] = timePattern.exec(line) ?? [];
  return second === undefined ? undefined : new Date(second + zone).toISOString() + fraction;
}

/** dateLength is the length of the part of a time that the server accepts as a parameter. */
const dateLength = new Date(0).toISOString().length;

/**
 * LogStream reads a log as it grows. The server sends the time of each line. After an interruption,
 * the stream resumes at the time of the last line.
 */
export class LogStream extends Store<LogState> {
  private readonly abort = new AbortController();
  private readonly backoff = new Backoff();
  private readonly query: URLSearchParams;
  private readonly address: string;
  private readonly withTimes: boolean;
  private lines: string[] = [];
  private dropped = 0;
  private rest = '';
  private position?: Position;
  /** skipped is the position up to which the server sends lines again. */
  private skipped?: Position;
  private opened = false;
  private flushing = false;

  constructor(path: string) {
    super({ lines: [], dropped: 0, ended: false, connection: 'loading' });
    const [address = '', query] = path.split('?');
    this.address = address;
    this.query = new URLSearchParams(query);
    this.withTimes = this.query.get('timestamps') === 'true';
    this.query.set('timestamps', 'true');
  }

  /** run reads until the log ends or close is called. */
  async run(): Promise<void> {
    while (!this.abort.signal.aborted) {
      const start = this.position;
      try {
        await this.read();
        // If the node stops, the log seems to end. The next request shows whether it continues.
        if (this.position === start || this.query.get('follow') !== 'true') {
          this.end();
          return;
        }
      } catch (error) {
        if (this.abort.signal.aborted) {
          return;
        }
        if (this.isFinal(error)) {
          this.publish({ ended: true, error: error as Error });
          return;
        }
        this.publish({ connection: 'interrupted', error: error instanceof ApiError && error.status !== 401 ? error : undefined });
        await this.backoff.pause();
      }
    }
  }

  close(): void {
    this.abort.abort();
  }

  /**
   * isFinal reports whether a retry would not succeed. A master that has just restarted rejects
   * requests until it has loaded all roles and resources.
   */
  private isFinal(error: unknown): boolean {
    if (!(error instanceof ApiError) || error.status >= 500 || [401, 429].includes(error.status)) {
      return false;
    }
    return !(this.opened && [403, 404].includes(error.status));
  }

  /** read reads the lines after the position until the response ends. */
  private async read(): Promise<void> {
    const query = new URLSearchParams(this.query);
    this.rest = '';
    this.skipped = this.position && { ...this.position };
    if (this.position) {
      query.delete('tailLines');
      query.delete('sinceSeconds');
      query.set('sinceTime', this.position.time.slice(0, dateLength));
    }
    const response = await send('GET', `${this.address}?${query}`, undefined, { accept: '*/*', signal: this.abort.signal });
    if (!this.position) {
      this.lines = []; // the lines of an interrupted response have no times
      this.dropped = 0;
    }
    this.opened = true;
    this.backoff.reset();
    this.publish({ connection: 'live', error: undefined });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const chunk = await reader?.read();
      if (!chunk || chunk.done) {
        break;
      }
      this.add(chunk.value);
    }
  }

  /** end keeps a last line that has no line break. */
  private end(): void {
    if (this.rest !== '') {
      this.take(this.rest);
      this.rest = '';
    }
    this.publish({ ended: true });
  }

  private add(chunk: string): void {
    const parts = (this.rest + chunk).split('\n');
    this.rest = parts.pop() ?? '';
    parts.forEach((part) => this.take(part));
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

  /** take keeps a line unless it was received before the interruption. */
  private take(line: string): void {
    const time = timeOf(line);
    if (this.skipped && (time === undefined || time < this.skipped.time || (time === this.skipped.time && this.skipped.count-- > 0))) {
      return;
    }
    this.skipped = undefined;
    if (time !== undefined) {
      this.position = { time, count: time === this.position?.time ? this.position.count + 1 : 1 };
    }
    this.lines.push(this.shown(line));
  }

  private shown(line: string): string {
    return this.withTimes ? line : line.replace(timePattern, '');
  }

  private publish(change: Partial<LogState>): void {
    const lines = this.rest === '' || this.skipped ? [...this.lines] : [...this.lines, this.shown(this.rest)];
    this.set({ ...this.get(), lines, dropped: this.dropped, ...change });
  }
}
