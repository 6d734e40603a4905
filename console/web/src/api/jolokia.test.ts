import { expect, it } from 'vitest';
import { beansOf, componentsOf, jolokiaPort, plainOperations } from './jolokia';
import type { LooseObject } from './types';

const pod = (ports: unknown[]) => ({ kind: 'Pod', metadata: { name: 'a' }, spec: { containers: [{ name: 'x' }, { name: 'y', ports }] } }) as unknown as LooseObject;

it('finds the port by its name', () => {
  expect(jolokiaPort(pod([{ name: 'http', containerPort: 8080 }, { name: 'jolokia', containerPort: 8778 }]))).toBe(8778);
  expect(jolokiaPort(pod([{ containerPort: 8778 }]))).toBeUndefined();
});

it('reads beans, their plain operations and the components of the JVM', () => {
  const beans = beansOf({
    'org.apache.camel': { 'context=c,type=routes': {} },
    'java.lang': { 'type=Memory': { attr: { Verbose: { type: 'boolean' } }, op: { gc: { args: [] }, set: { args: [{ name: 'a', type: 'int' }] }, two: [{ args: [] }] } } },
  });
  expect(beans.map(({ name }) => name)).toEqual(['java.lang:type=Memory', 'org.apache.camel:context=c,type=routes']);
  expect(beans.map(plainOperations)).toEqual([['gc'], []]);
  expect(componentsOf(beans).map(([name]) => name)).toEqual(['Camel']);
});
