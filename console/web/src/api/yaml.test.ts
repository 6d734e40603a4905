import { afterEach, describe, expect, it, vi } from 'vitest';
import { comparable, InvalidText, parseObjects, rebase, store, toYAML } from './yaml';
import type { KubeObject } from './types';

afterEach(() => vi.unstubAllGlobals());

describe('parseObjects', () => {
  it('reads documents, JSON and lists', () => {
    const source = 'apiVersion: v1\nkind: Pod\n---\n{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret"}]}\n---\n';
    expect(parseObjects(source).map((object) => object.kind)).toEqual(['Pod', 'Secret']);
  });

  it('names the place of an error', () => {
    expect(() => parseObjects('a: [1')).toThrow(/line 1/);
  });

  it.each(['', '# a comment', 'just text', '- a\n- b', 'kind: Pod', 'apiVersion: v1', 'apiVersion: 1\nkind: Pod'])('rejects %j', (source) => {
    expect(() => parseObjects(source)).toThrow(InvalidText);
  });

  it('rejects a text that expands to a large object', () => {
    const levels = ['a: &a0 [x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 9; i++) {
      levels.push(`b${i}: &a${i} [${Array(9).fill(`*a${i - 1}`).join(', ')}]`);
    }
    expect(() => parseObjects(levels.join('\n'))).toThrow(InvalidText);
  });
});

describe('toYAML', () => {
  it('omits managed fields and can be parsed again', () => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', uid: '1', managedFields: [{}] }, data: { b: 'line 1\nline 2\n' } } as unknown as KubeObject;
    const source = toYAML(object);
    expect(source).not.toContain('managedFields');
    expect(parseObjects(source)[0]).toMatchObject({ metadata: { name: 'a' }, data: { b: 'line 1\nline 2\n' } });
  });
});

describe('An edit of an object whose status changes', () => {
  const version = (resourceVersion: string, replicas: number, ready: number) =>
    ({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a', uid: '1', resourceVersion, creationTimestamp: '' }, spec: { replicas }, status: { ready } }) as KubeObject & { spec: object; status?: object };

  it('applies to the current version', () => {
    const [base, edited, current] = [version('1', 1, 0), version('1', 2, 0), version('2', 1, 1)];
    expect(comparable(current)).toBe(comparable(base));
    expect(rebase(edited, base, current)).toEqual(version('2', 2, 1));
  });

  it('keeps a typed version and a typed status', () => {
    const [base, current] = [version('1', 1, 0), version('2', 1, 1)];
    expect(rebase(version('', 2, 0), base, current)).toEqual(version('', 2, 0));
    expect(rebase(version('1', 2, 5), base, current)).toEqual(version('1', 2, 5));
  });

  it('conflicts with a change to the spec', () => {
    const [base, edited, current] = [version('1', 1, 0), version('1', 2, 0), version('2', 3, 0)];
    expect(comparable(current)).not.toBe(comparable(base));
    expect(rebase(edited, base, current)).toBe(edited);
  });

  /**
   * serve responds to requests for an object. Before each of the first PUT requests, the object
   * changes to the next of the given versions.
   */
  function serve(...versions: ReturnType<typeof version>[]) {
    const requests: string[] = [];
    let [stored] = versions;
    vi.stubGlobal('fetch', (_: string, { method, body }: RequestInit) => {
      requests.push(method ?? '');
      if (method === 'GET') {
        return Promise.resolve(new Response(JSON.stringify(stored)));
      }
      stored = versions.shift() ?? stored;
      const sent = JSON.parse(String(body)) as KubeObject;
      const isCurrent = sent.metadata.resourceVersion === stored?.metadata.resourceVersion;
      const conflict = { kind: 'Status', reason: 'Conflict', message: 'changed' };
      return Promise.resolve(isCurrent ? new Response(String(body)) : new Response(JSON.stringify(conflict), { status: 409 }));
    });
    return requests;
  }

  it('is stored although the watched version is outdated', async () => {
    const requests = serve(version('2', 1, 1), version('3', 1, 2));
    const [base, edited] = [version('1', 1, 0), version('1', 2, 0)];
    expect(await store('/things/a', edited, base, base)).toEqual(version('3', 2, 2));
    expect(requests).toEqual(['PUT', 'GET', 'PUT', 'GET', 'PUT']);
  });

  it.each([
    ['a change to the spec', version('1', 2, 0), version('2', 3, 0)],
    ['an edited status', version('1', 1, 5), version('2', 1, 1)],
  ])('is rejected for %s', async (_, edited, current) => {
    const requests = serve(current);
    await expect(store('/things/a', edited, version('1', 1, 0), version('1', 1, 0))).rejects.toThrow('changed');
    expect(requests).toEqual(['PUT', 'GET']);
  });
});
