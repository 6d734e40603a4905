import { Backoff } from './backoff';
import { get, proxy, ApiError } from './http';
import { Store } from './store';
import type { Column, KubeObject, Metadata, Row } from './types';
import { text } from '../text/en';

/** Connection specifies whether a snapshot is current. */
export type Connection = 'loading' | 'live' | 'interrupted';

/** Snapshot is the state of a watch at one point in time. Its items are unordered. */
export interface Snapshot<T> {
  items: T[];
  columns: Column[];
  /** loaded means that items is complete. */
  loaded: boolean;
  connection: Connection;
  error?: ApiError | Error;
}

interface Item {
  metadata: Metadata;
}

interface List {
  metadata: { resourceVersion?: string; continue?: string };
  items?: KubeObject[];
  rows?: TableRow[];
  columnDefinitions?: Column[];
  apiVersion?: string;
  kind?: string;
}

interface TableRow {
  cells: Row['cells'];
  object: { metadata: Metadata };
}

interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: KubeObject & List & { code?: number };
}

const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const pageSize = 500;
/**
 * lingerPeriod is how long a watch continues without observers, in case the user returns to the
 * page that used it.
 */
const lingerPeriod = 10_000;

/**
 * Watch watches a collection. It lists the collection in pages, and applies the events from a
 * WebSocket. After an interruption, it resumes at the last version that it has received. It lists
 * the collection again only if the server no longer has that version.
 */
export class Watch<T extends Item> extends Store<Snapshot<T>> {
  private byUID = new Map<string, T>();
  private columns: Column[] = [];
  private version = '';
  /**
   * changed contains the UIDs of objects whose events are newer than the list that is being read.
   */
  private changed?: Set<string>;
  private socket?: WebSocket;
  private observerCount = 0;
  private epoch = 0;
  private readonly backoff = new Backoff();
  private flushing = false;
  private connection: Connection = 'loading';
  private loaded = false;
  private lingering?: ReturnType<typeof setTimeout>;

  constructor(
    private readonly path: string,
    private readonly query: Record<string, string>,
    private readonly table: boolean,
    private readonly dropped: () => void,
  ) {
    super({ items: [], columns: [], loaded: false, connection: 'loading' });
    const observe = this.subscribe;
    this.subscribe = (observer) => {
      const stop = observe(observer);
      this.acquire();
      return () => {
        stop();
        this.release();
      };
    };
  }

  private acquire(): void {
    clearTimeout(this.lingering);
    if (this.observerCount++ === 0 && this.epoch === 0) {
      void this.run(++this.epoch);
    }
  }

  private release(): void {
    if (--this.observerCount === 0) {
      this.lingering = setTimeout(() => {
        this.epoch = -1;
        this.socket?.close();
        this.dropped();
      }, lingerPeriod);
    }
  }

  private active(epoch: number): boolean {
    return this.epoch === epoch;
  }

  /** run lists and watches until there are no observers. */
  private async run(epoch: number): Promise<void> {
    while (this.active(epoch)) {
      try {
        const finish = this.version === '' ? await this.list(epoch) : undefined;
        if (!this.active(epoch)) {
          return;
        }
        await Promise.all([finish?.(), this.follow(epoch)]);
      } catch (error) {
        if (!this.active(epoch)) {
          return;
        }
        this.connection = 'interrupted';
        this.flush(error as Error);
        // If the collection was never listed, these errors are final. Later, they can be temporary,
        // because a master that has just restarted rejects requests until it has loaded all roles
        // and resources.
        if (!this.loaded && error instanceof ApiError && [403, 404, 405].includes(error.status)) {
          return; // a retry would not succeed
        }
      }
      await this.backoff.pause();
    }
  }

  private address(query: Record<string, string>): string {
    return this.path + '?' + new URLSearchParams({ ...this.query, ...query });
  }

  /**
   * list reads the first page, and returns a function that reads the remaining pages. The watch
   * starts at the first page's version, so that changes appear while the remaining pages are being
   * read.
   */
  private async list(epoch: number): Promise<() => Promise<void>> {
    const changed = new Set<string>();
    const seen = new Set<string>();
    const take = (page: List): string => {
      if (page.columnDefinitions?.length) {
        this.columns = page.columnDefinitions;
      }
      for (const item of this.read(page)) {
        seen.add(item.metadata.uid);
        if (!changed.has(item.metadata.uid)) {
          this.byUID.set(item.metadata.uid, item);
        }
      }
      this.flush();
      return page.metadata.continue ?? '';
    };
    const first = await this.page();
    let next = this.active(epoch) ? take(first) : '';
    this.version = first.metadata.resourceVersion ?? '';
    this.changed = changed;
    const current = () => this.active(epoch) && this.changed === changed;
    return async () => {
      try {
        while (next !== '') {
          const page = await this.page(next);
          if (!current()) {
            return;
          }
          next = take(page);
        }
      } catch (error) {
        if (current()) {
          this.version = ''; // the list is incomplete
          this.socket?.close();
        }
        throw error;
      }
      const gone = [...this.byUID.keys()].filter((uid) => !seen.has(uid) && !changed.has(uid));
      gone.forEach((uid) => this.byUID.delete(uid));
      this.changed = undefined;
      this.loaded = true;
      this.flush();
    };
  }

  private page(next?: string): Promise<List> {
    const query = { limit: String(pageSize), ...(next && { continue: next }) };
    return get<List>(this.address(query), { accept: this.table ? `${tableType},application/json` : 'application/json' });
  }

  /** read returns the items in a list or in an event's Table. */
  private read(list: List): T[] {
    if (list.rows) {
      return list.rows.map((row) => ({ cells: row.cells, metadata: shown(row.object.metadata) }) as unknown as T);
    }
    const kind = list.kind?.replace(/List$/, '');
    return (list.items ?? []).map((item) => Object.assign({ apiVersion: list.apiVersion, kind }, item, { metadata: shown(item.metadata) }) as unknown as T);
  }

  /** follow applies events until the connection ends. */
  private follow(epoch: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const query: Record<string, string> = { watch: '1', allowWatchBookmarks: 'true', resourceVersion: this.version };
      if (this.table) {
        query.accept = tableType;
      }
      const socket = new WebSocket(`wss://${location.host}${proxy}${this.address(query)}`);
      this.socket = socket;
      let opened = false;
      socket.onopen = () => {
        opened = true;
        this.backoff.reset();
        this.connection = 'live';
        this.flush();
      };
      socket.onmessage = (message) => {
        if (this.active(epoch)) {
          this.apply(JSON.parse(message.data as string) as WatchEvent);
        }
      };
      socket.onclose = () => {
        if (this.active(epoch) && this.version !== '') {
          this.connection = 'interrupted';
          this.flush();
        }
        if (opened || !this.active(epoch) || this.version === '') {
          resolve();
          return;
        }
        // A failed handshake does not report the reason. A list request does, for example if the
        // session has expired.
        get(this.address({ limit: '1' })).then(() => reject(new Error(text.failure.refused)), reject);
      };
    });
  }

  private apply(event: WatchEvent): void {
    if (event.type === 'ERROR') {
      this.version = ''; // the server no longer has this version
      this.socket?.close();
      return;
    }
    if (event.type === 'BOOKMARK') {
      this.version = event.object.metadata?.resourceVersion ?? event.object.rows?.[0]?.object.metadata.resourceVersion ?? this.version;
      return;
    }
    const items = this.read(event.object.rows ? event.object : { metadata: {}, items: [event.object] });
    for (const item of items) {
      this.version = item.metadata.resourceVersion;
      this.changed?.add(item.metadata.uid);
      if (event.type === 'DELETED') {
        this.byUID.delete(item.metadata.uid);
      } else {
        this.byUID.set(item.metadata.uid, item);
      }
    }
    this.flush();
  }

  /** flush publishes a snapshot, at most once per frame. */
  private flush(error?: Error): void {
    const publish = () =>
      this.set({ items: [...this.byUID.values()], columns: this.columns, loaded: this.loaded, connection: this.connection, error });
    if (error) {
      publish();
      return;
    }
    if (!this.flushing) {
      this.flushing = true;
      const later = document.hidden ? (run: () => void) => setTimeout(run, 250) : requestAnimationFrame;
      later(() => {
        this.flushing = false;
        publish();
      });
    }
  }
}

/**
 * shown returns metadata without the managed fields, which make up most of the metadata and which
 * no page shows.
 */
function shown(metadata: Metadata & { managedFields?: unknown }): Metadata {
  const { managedFields: _, ...others } = metadata;
  return others;
}

const watches = new Map<string, Watch<never>>();

function shared<T extends Item>(path: string, query: Record<string, string>, table: boolean): Watch<T> {
  const key = `${table ? 'table' : 'objects'} ${path}?${new URLSearchParams(query)}`;
  let watch = watches.get(key) as Watch<T> | undefined;
  if (!watch) {
    watch = new Watch<T>(path, query, table, () => watches.delete(key));
    watches.set(key, watch as unknown as Watch<never>);
  }
  return watch;
}

/** watchObjects returns the watch of a collection's objects, which components share. */
export function watchObjects<T extends Item = KubeObject>(path: string, query: Record<string, string> = {}): Watch<T> {
  return shared<T>(path, query, false);
}

/** watchTable returns the watch of a collection, with the columns that the server chooses. */
export function watchTable(path: string, query: Record<string, string> = {}): Watch<Row> {
  return shared<Row>(path, query, true);
}
