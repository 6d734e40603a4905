import { expect, it } from 'vitest';
import { beansOf, componentsOf, jolokiaPort, operationsOf, valueOf } from './jolokia';
import type { LooseObject } from './types';

const pod = (ports: unknown[]) => ({ kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [{ name: 'x' }, { name: 'y', ports }] } }) as unknown as LooseObject;

it('finds the port by its name', () => {
  expect(jolokiaPort(pod([{ name: 'http', containerPort: 8080 }, { name: 'jolokia', containerPort: 8778 }]))).toBe(8778);
  expect(jolokiaPort(pod([{ containerPort: 8778 }]))).toBeUndefined();
});

it('reads beans, their operations and the components of the JVM', () => {
  const beans = beansOf({
    'org.apache.camel': { 'context=c,type=routes': {} },
    'java.lang': { 'type=Memory': { attr: { Verbose: { type: 'boolean' } }, op: { gc: { args: [] }, set: { args: [{ name: 'a', type: 'int' }] }, two: [{ args: [] }, { args: [{ name: 'a', type: 'long' }, { name: 'b', type: 'java.lang.String' }] }] } } },
  });
  expect(beans.map(({ name }) => name)).toEqual(['java.lang:type=Memory', 'org.apache.camel:context=c,type=routes']);
  expect(beans.map((bean) => operationsOf(bean).map(({ signature }) => signature))).toEqual([['gc()', 'set(int)', 'two()', 'two(long,java.lang.String)'], []]);
  expect(componentsOf(beans).map(([name]) => name)).toEqual(['Camel']);
});

it('parses values by their types', () => {
  const all: [type: string, entered: string][] = [['int', '3'], ['java.lang.String', '3'], ['boolean', 'true'], ['[I', '[1,2]']];
  expect(all.map(([type, entered]) => valueOf(type, entered))).toEqual([3, '3', true, [1, 2]]);
  expect(() => valueOf('long', 'many')).toThrow('many is not a number');
});
