import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { session } from './session';
import type { Row } from './types';
import { watchObjects, watchTable } from './watch';

/** FakeSocket is a fake WebSocket. all contains the sockets that a watch has opened. */
class FakeSocket {
  static all: FakeSocket[] = [];
  onopen?: () => void;
  onclose?: () => void;
  onmessage?: (message: { data: string }) => void;
  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }
  close() {
    this.onclose?.();
  }
  send(type: string, object: unknown) {
    this.onmessage?.({ data: JSON.stringify({ type, object }) });
  }
}

const pod = (name: string, version: string) => ({ metadata: { name, uid: name, resourceVersion: version } });
const list = (items: unknown[], version: string, next = '') => ({ kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: version, continue: next }, items });

let responses: (() => Response)[] = [];
const requests: string[] = [];

beforeEach(() => {
  FakeSocket.all = [];
  requests.length = 0;
  session.set('active');
  vi.stubGlobal('WebSocket', FakeSocket);
  vi.stubGlobal('fetch', (url: string) => {
    requests.push(url);
    return Promise.resolve(responses.shift()?.() ?? new Response('', { status: 500 }));
  });
});
afterEach(() => vi.unstubAllGlobals());

const json = (value: unknown, status = 200) => () => new Response(JSON.stringify(value), { status });
const socket = (n: number) => vi.waitFor(() => FakeSocket.all[n] ?? Promise.reject(new Error('no socket')));

let number = 0;
/** path returns a different path for each test, because watches with the same path are shared. */
const path = () => `/api/v1/pods${number++}`;

describe('Watch', () => {
  it('lists in pages, then applies events', async () => {
    responses = [json(list([pod('a', '1')], '5', 'next page')), json(list([pod('b', '2')], '5'))];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    const first = await socket(0);
    expect(requests[1]).toContain('continue=next+page');
    expect(first.url).toContain('resourceVersion=5');
    first.onopen?.();
    first.send('ADDED', pod('c', '6'));
    first.send('MODIFIED', pod('a', '7'));
    first.send('DELETED', pod('b', '8'));
    await vi.waitFor(() => {
      expect(watch.get().connection).toBe('live');
      expect(watch.get().items.map((item) => `${item.metadata.name} ${item.metadata.resourceVersion}`)).toEqual(['a 7', 'c 6']);
    });
    stop();
  });

  it('applies events while later pages are being read', async () => {
    let arrive = (_: Response) => {};
    const later = new Promise<Response>((resolve) => (arrive = resolve));
    responses = [json(list([pod('a', '1')], '5', 'next')), () => later as unknown as Response];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    const first = await socket(0);
    first.onopen?.();
    first.send('MODIFIED', pod('a', '6'));
    first.send('MODIFIED', pod('b', '7'));
    first.send('DELETED', pod('c', '8'));
    first.send('ADDED', pod('d', '9'));
    const shown = () => watch.get().items.map((item) => `${item.metadata.name} ${item.metadata.resourceVersion}`);
    await vi.waitFor(() => expect(shown()).toEqual(['a 6', 'b 7', 'd 9']));
    expect(watch.get().loaded).toBe(false);
    arrive(json(list([pod('b', '2'), pod('c', '3'), pod('e', '4')], '5'))());
    await vi.waitFor(() => expect(watch.get().loaded).toBe(true));
    expect(shown()).toEqual(['a 6', 'b 7', 'd 9', 'e 4']);
    stop();
  });

  it('lists again when a later page fails', async () => {
    responses = [json(list([pod('a', '1')], '5', 'next')), json({ kind: 'Status', message: 'too old' }, 410), json(list([pod('b', '2')], '20'))];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    expect((await socket(0)).url).toContain('resourceVersion=5');
    expect((await socket(1)).url).toContain('resourceVersion=20');
    await vi.waitFor(() => expect(watch.get().items.map(({ metadata }) => metadata.name)).toEqual(['b']));
    stop();
  });

  it('resumes at the last received version', async () => {
    responses = [json(list([pod('a', '1')], '5'))];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    const first = await socket(0);
    first.onopen?.();
    first.send('BOOKMARK', { metadata: { resourceVersion: '9' } });
    first.close();
    // The watch reports the failure immediately, because reconnecting can take a long time.
    await vi.waitFor(() => expect(watch.get().connection).toBe('interrupted'));
    expect((await socket(1)).url).toContain('resourceVersion=9');
    expect(requests).toHaveLength(1);
    stop();
  });

  it('lists again when the server no longer has the version', async () => {
    responses = [json(list([pod('a', '1'), pod('gone', '2')], '5')), json(list([pod('a', '1')], '20'))];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    const first = await socket(0);
    first.onopen?.();
    first.send('ERROR', { code: 410 });
    expect((await socket(1)).url).toContain('resourceVersion=20');
    await vi.waitFor(() => expect(watch.get().items).toHaveLength(1));
    stop();
  });

  it('waits for a login when the session has expired', async () => {
    responses = [json(list([pod('a', '1')], '5')), json({ kind: 'Status', message: 'log in' }, 401)];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    (await socket(0)).close();
    await vi.waitFor(() => expect(session.get()).toBe('expired'));
    expect(watch.get().items).toHaveLength(1);
    session.set('active');
    expect((await socket(1)).url).toContain('resourceVersion=5');
    stop();
  });

  it('stops if the user may not list the collection', async () => {
    responses = [json({ kind: 'Status', reason: 'Forbidden', message: 'no right' }, 403)];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    await vi.waitFor(() => expect(watch.get().error?.message).toBe('no right'));
    expect(FakeSocket.all).toHaveLength(0);
    stop();
  });

  it('retries if a starting server rejects a permitted request', async () => {
    const refused = json({ kind: 'Status', reason: 'Forbidden', message: 'no role yet' }, 403);
    responses = [json(list([pod('a', '1')], '5')), refused];
    const watch = watchObjects(path());
    const stop = watch.subscribe(() => {});
    await vi.waitFor(() => expect(watch.get().loaded).toBe(true));
    (await socket(0)).close();
    await vi.waitFor(() => expect(watch.get().connection).toBe('interrupted'));
    (await socket(1)).onopen?.();
    await vi.waitFor(() => expect(watch.get().connection).toBe('live'));
    expect(watch.get().items).toHaveLength(1);
    stop();
  });

  it('reads tables', async () => {
    const table = (cells: unknown[], version: string) => ({ kind: 'Table', metadata: { resourceVersion: version }, columnDefinitions: [{ name: 'Name', priority: 0 }], rows: [{ cells, object: pod('a', version) }] });
    responses = [json(table(['a', 'Pending'], '5'))];
    const watch = watchTable(path());
    const stop = watch.subscribe(() => {});
    const first = await socket(0);
    expect(first.url).toContain('as%3DTable');
    first.onopen?.();
    first.send('MODIFIED', table(['a', 'Running'], '6'));
    await vi.waitFor(() => expect((watch.get().items[0] as Row).cells).toEqual(['a', 'Running']));
    stop();
  });
});
