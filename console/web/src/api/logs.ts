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

/**
 * shortRead is the time, in milliseconds, within which the server sends the rest of a log that has
 * ended.
 */
const shortRead = 5_000;

/**
 * maxRefusal is how long, in milliseconds, the server must refuse a log before the log is
 * considered complete.
 */
const maxRefusal = 60_000;

const timePattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d) /;

/**
 * secondOf returns the time that the server puts before a line, truncated to a second. It converts
 * the time to UTC, so that the alphabetical order of the results is their chronological order.
 */
function secondOf(line: string): string | undefined {
  const [, second, , zone] = timePattern.exec(line) ?? [];
  const date = new Date(`${second}${zone}`);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/**
 * LogStream reads a log as it grows. The server sends the time of each line. After an interruption,
 * the stream resumes at the second of the latest line, because the server does not accept a
 * fraction.
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
  /** since is the second of the latest line. */
  private since?: string;
  /**
   * recent maps each line of that second to the number of times that it was received. After an
   * interruption, the server sends these lines again.
   */
  private readonly recent = new Map<string, number>();
  /** repeated counts the recent lines that the server has not yet sent again. */
  private repeated = new Map<string, number>();
  /** grown means that the current response has a new line. */
  private grown = false;
  /**
   * refusedSince is the time of the first of several consecutive refusals. It is undefined if the
   * latest request was not refused.
   */
  private refusedSince?: number;
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
    let afterEnd = false;
    while (!this.abort.signal.aborted) {
      try {
        const duration = await this.read();
        if (this.isComplete() || (afterEnd && !this.grown && duration < shortRead)) {
          this.end();
          return;
        }
        // The log also seems to end if the node stops. The next request shows whether the log
        // continues.
        afterEnd = true;
      } catch (error) {
        if (this.abort.signal.aborted) {
          return;
        }
        if (this.isFinal(error, afterEnd)) {
          this.publish({ ended: true, error: error as Error });
          return;
        }
        afterEnd = false;
        this.publish({ connection: 'interrupted', error: error instanceof ApiError && error.status !== 401 ? error : undefined });
      }
      await this.backoff.pause();
    }
  }

  close(): void {
    this.abort.abort();
  }

  /**
   * isComplete reports whether one response is the entire log. A log whose lines have no times is
   * complete, because it is a build log that the server stored after the build.
   */
  private isComplete(): boolean {
    return this.query.get('follow') !== 'true' || (this.since === undefined && this.lines.length > 0);
  }

  /**
   * isFinal reports whether a retry would not succeed. A refusal can be temporary, because a master
   * that has just restarted refuses requests until it has loaded all roles and resources. A refusal
   * directly after the end of a response is final, because it means that the pod no longer exists.
   */
  private isFinal(error: unknown, afterEnd: boolean): boolean {
    const status = error instanceof ApiError ? error.status : undefined;
    if (status !== 403 && status !== 404) {
      this.refusedSince = undefined;
      return status !== undefined && status < 500 && ![401, 429].includes(status);
    }
    this.refusedSince ??= Date.now();
    return !this.opened || afterEnd || Date.now() - this.refusedSince >= maxRefusal;
  }

  /**
   * read reads the lines since the latest second until the response ends. It returns the
   * response's duration in milliseconds.
   */
  private async read(): Promise<number> {
    const query = new URLSearchParams(this.query);
    if (this.since) {
      query.delete('tailLines');
      query.delete('sinceSeconds');
      query.set('sinceTime', this.since);
    }
    const response = await send('GET', `${this.address}?${query}`, undefined, { accept: '*/*', signal: this.abort.signal });
    const start = Date.now();
    if (!this.since) {
      this.lines = []; // start again, because the previous lines have no times
      this.dropped = 0;
    }
    this.rest = '';
    this.repeated = new Map(this.recent);
    this.grown = false;
    this.opened = true;
    this.refusedSince = undefined;
    this.backoff.reset();
    this.publish({ connection: 'live', error: undefined });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const chunk = await reader?.read();
      if (!chunk || chunk.done) {
        return Date.now() - start;
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
    const count = this.repeated.get(line);
    if (count !== undefined) {
      if (count > 1) {
        this.repeated.set(line, count - 1);
      } else {
        this.repeated.delete(line);
      }
      return;
    }
    this.grown = true;
    const second = secondOf(line);
    if (second !== undefined && second > (this.since ?? '')) {
      this.since = second;
      this.recent.clear();
      this.repeated.clear();
    }
    if (second !== undefined && second === this.since) {
      this.recent.set(line, (this.recent.get(line) ?? 0) + 1);
    }
    this.lines.push(this.shown(line, second !== undefined));
  }

  private shown(line: string, hasTime: boolean): string {
    return this.withTimes || !hasTime ? line : line.replace(timePattern, '');
  }

  private publish(change: Partial<LogState>): void {
    const lines = this.rest === '' || this.repeated.size > 0 ? [...this.lines] : [...this.lines, this.shown(this.rest, secondOf(this.rest) !== undefined)];
    this.set({ ...this.get(), lines, dropped: this.dropped, ...change });
  }
}
