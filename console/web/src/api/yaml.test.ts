import { describe, expect, it } from 'vitest';
import { InvalidText, parseObjects, toYAML } from './yaml';
import type { KubeObject } from './types';

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
