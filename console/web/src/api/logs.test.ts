import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Backoff } from './backoff';
import { LogStream } from './logs';
import { session } from './session';

/** responses contains the server's next responses. An error ends the connection. */
let responses: (() => Promise<Response>)[] = [];
const requests: URLSearchParams[] = [];

beforeEach(() => {
  vi.spyOn(Backoff.prototype, 'pause').mockResolvedValue();
  vi.useFakeTimers({ toFake: ['Date'] });
  session.set('active');
  responses = [];
  requests.length = 0;
  vi.stubGlobal('fetch', (url: string) => {
    requests.push(new URLSearchParams(url.split('?')[1]));
    return responses.shift()?.() ?? Promise.resolve(new Response('{"kind": "Status", "message": "no response is left"}', { status: 400 }));
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const at = (second: string, line: string) => `2026-01-02T03:04:${second}+01:00 ${line}\n`;
const complete = (...lines: string[]) => () => Promise.resolve(new Response(lines.join('')));
const refused = (status: number) => () => Promise.resolve(new Response('not ready', { status }));

/** pass advances the fake clock. */
const pass = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

/** quiet is a response that stays open for a minute, and has no lines. */
const quiet = () => {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      pass(60);
      controller.close();
    },
  }, { highWaterMark: 0 });
  return Promise.resolve(new Response(body));
};

/** broken is a response whose connection fails after some lines. */
const broken = (...lines: string[]) => () => {
  const chunks = lines.map((line) => new TextEncoder().encode(line));
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk) {
        controller.enqueue(chunk);
        return;
      }
      controller.error(new TypeError('network error'));
    },
  });
  return Promise.resolve(new Response(body));
};

async function read(query = 'follow=true&tailLines=10&sinceSeconds=60') {
  const stream = new LogStream(`/api/v1/namespaces/a/pods/b/log?${query}`);
  const connections = new Set<string>();
  stream.subscribe(() => connections.add(stream.get().connection));
  await stream.run();
  return { ...stream.get(), connections };
}

it('continues after an interruption with the lines that are missing', async () => {
  responses = [
    broken(at('05.1', 'one'), at('05.12', 'two'), at('05.12', 'three'), '2026-01-02T03:04:06+01:00 fo'),
    refused(403),
    complete(at('05.1', 'one'), at('05.12', 'two'), at('05.12', 'three'), at('05.12', 'same time'), at('06', 'four')),
    complete(at('06', 'four')),
  ];
  const { lines, ended, error, connection, connections } = await read();
  expect(lines).toEqual(['one', 'two', 'three', 'same time', 'four']);
  expect([ended, error, connection]).toEqual([true, undefined, 'live']);
  expect(connections).toContain('interrupted');
  expect(requests).toHaveLength(4);
  expect([requests[0]?.get('tailLines'), requests[0]?.get('sinceSeconds'), requests[0]?.get('sinceTime')]).toEqual(['10', '60', null]);
  expect([requests[2]?.get('tailLines'), requests[2]?.get('sinceSeconds'), requests[2]?.get('sinceTime')]).toEqual([null, null, '2026-01-02T02:04:05.000Z']);
});

it('continues if the node of a followed log stops and starts', async () => {
  responses = [complete(at('05', 'one')), refused(502), complete(at('05', 'one'), at('07', 'two')), complete(at('07', 'two'))];
  expect((await read()).lines).toEqual(['one', 'two']);
});

it('reads lines without times again from the start', async () => {
  responses = [broken('one\n', 'two\n'), complete('one\n', 'two\n', 'three')];
  expect((await read()).lines).toEqual(['one', 'two', 'three']);
});

it('shows times only if the query requests them', async () => {
  const line = at('05', 'one');
  responses = [complete(line, 'no time'), complete(line)];
  expect((await read('follow=false&timestamps=true')).lines).toEqual([line.trim(), 'no time']);
  expect((await read('follow=false')).lines).toEqual(['one']);
  expect(requests.map((query) => query.get('timestamps'))).toEqual(['true', 'true']);
});

it('reads the stored lines of a build once', async () => {
  responses = [complete('one\n', '2026-99-99T99:99:99Z two\n')];
  expect((await read()).lines).toEqual(['one', '2026-99-99T99:99:99Z two']);
});

it('continues if the log is quiet after the node starts again', async () => {
  responses = [
    complete(at('05', 'one')), refused(502), complete(at('05', 'one')), // the node stops again before the next line
    quiet, refused(502), complete(at('05', 'one'), at('07', 'two')), complete(at('07', 'two')),
  ];
  const { lines, error } = await read();
  expect([lines, error, requests.length]).toEqual([['one', 'two'], undefined, 7]);
});

it('continues after two quiet responses', async () => {
  responses = [complete(at('05', 'one')), quiet, quiet, complete(at('07', 'two')), complete()];
  expect((await read()).lines).toEqual(['one', 'two']);
});

it('ends without lines', async () => {
  responses = [complete(), complete()];
  const { lines, ended, error } = await read();
  expect([lines, ended, error]).toEqual([[], true, undefined]);
});

it('keeps lines that are not in the order of their times, once each', async () => {
  const received = [at('05.3', 'one'), at('05.1', 'two'), at('04.9', 'early'), at('05.1', 'two')];
  responses = [broken(...received), broken(at('05.3', 'one')), complete(at('05.3', 'one'), at('05.1', 'two'), at('05.1', 'two'), at('05.2', 'three'), at('06', 'four'), at('05.9', 'five')), complete(at('06', 'four'))];
  expect((await read()).lines).toEqual(['one', 'two', 'early', 'two', 'three', 'four', 'five']);
});

it('keeps the beginning of a line when the pod of an ended log no longer exists', async () => {
  responses = [complete(at('05', 'one'), '2026-01-02T03:04:06+01:00 tw'), refused(404)];
  const { lines, ended, error } = await read();
  expect([lines, ended, error?.message, requests.length]).toEqual([['one', 'tw'], true, 'not ready', 2]);
});

it.each([403, 404])('ends after a minute of responses with status %i', async (status) => {
  const after = (seconds: number, of: number) => () => {
    pass(seconds);
    return refused(of)();
  };
  responses = [broken(at('05', 'one')), refused(status), after(59, status), after(30, 502), after(0, status), after(59, status), after(1, status), complete()];
  const { ended, error } = await read();
  expect([ended, error?.message, responses.length]).toEqual([true, 'not ready', 1]);
});

it('ends if the server rejects the request', async () => {
  responses = [refused(404)];
  const { ended, error } = await read();
  expect([ended, error?.message]).toEqual([true, 'not ready']);
});
