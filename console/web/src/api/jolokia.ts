import { java } from '../text/java';
import { ApiError, post } from './http';
import type { LooseObject } from './types';

/** portName is the name of the container port on which a Jolokia agent serves a JVM's beans. */
const portName = 'jolokia';

/** jolokiaPort returns the port of a pod's Jolokia agent, if the pod has one. */
export function jolokiaPort(pod: LooseObject): number | undefined {
  const { containers } = (pod.spec ?? {}) as { containers?: { ports?: { name?: string; containerPort: number }[] }[] };
  return containers?.flatMap((container) => container.ports ?? []).find((port) => port.name === portName)?.containerPort;
}

/** Attribute describes a bean's attribute. */
export interface Attribute {
  type?: string;
  desc?: string;
  /** rw means that users can set the attribute. */
  rw?: boolean;
}

/** Argument is an operation's argument. */
export interface Argument {
  name: string;
  type: string;
}

/** Operation describes a bean's operation. */
export interface Operation {
  args?: Argument[];
  ret?: string;
  desc?: string;
}

/** Bean is a JVM's bean. Its full name has a form such as java.lang:type=Memory. */
export interface Bean {
  name: string;
  domain: string;
  attributes: Record<string, Attribute>;
  operations: Record<string, Operation | Operation[]>;
}

/** Thread is a JVM's thread. */
export interface Thread {
  threadId: number;
  threadName: string;
  threadState: string;
  lockName?: string | null;
  stackTrace?: { className: string; methodName: string; fileName?: string | null; lineNumber: number }[];
}

interface Reply<T> {
  status: number;
  value?: T;
  error?: string;
}

type List = Record<string, Record<string, { attr?: Bean['attributes'] | null; op?: Bean['operations'] | null }>>;

/** Jolokia sends requests to a pod's agent through the API server, with the user's permissions. */
export class Jolokia {
  private scheme = 'https';

  constructor(private readonly pod: LooseObject) {}

  private path(): string {
    const { namespace = '', name } = this.pod.metadata;
    return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${this.scheme}:${encodeURIComponent(name)}:${jolokiaPort(this.pod)}/proxy/jolokia/`;
  }

  /** request sends a request in Jolokia's protocol and returns the value in its response. */
  private async request<T>(body: object): Promise<T> {
    let reply: Reply<T>;
    try {
      reply = await post<Reply<T>>(this.path(), body, { repeatable: true });
    } catch (error) {
      // The agent in OpenShift's Java images uses TLS, but other agents do not.
      if (!(error instanceof ApiError) || error.status < 500 || this.scheme === 'http') {
        throw error;
      }
      this.scheme = 'http';
      reply = await post<Reply<T>>(this.path(), body, { repeatable: true });
    }
    if (reply.status !== 200) {
      throw new Error(reply.error ?? `Jolokia reports the status ${reply.status}`);
    }
    return reply.value as T;
  }

  /** beans returns all beans, by name. */
  async beans(): Promise<Bean[]> {
    return beansOf(await this.request<List>({ type: 'list' }));
  }

  /** read returns the values of a bean's attributes. */
  read(bean: string): Promise<Record<string, unknown>> {
    return this.request({ type: 'read', mbean: bean });
  }

  /** write sets a bean's attribute. */
  write(bean: string, attribute: string, value: unknown): Promise<unknown> {
    return this.request({ type: 'write', mbean: bean, attribute, value });
  }

  /** execute runs the operation with the given signature and returns its result. */
  execute(bean: string, operation: string, values: unknown[]): Promise<unknown> {
    return this.request({ type: 'exec', mbean: bean, operation, arguments: values });
  }

  /** threads returns the JVM's threads with their stacks. */
  threads(): Promise<Thread[]> {
    const operation = 'dumpAllThreads(boolean,boolean)';
    return this.request({ type: 'exec', mbean: 'java.lang:type=Threading', operation, arguments: [false, false] });
  }
}

/** beansOf parses the response to a list request. */
export function beansOf(list: List): Bean[] {
  return Object.entries(list)
    .flatMap(([domain, beans]) =>
      Object.entries(beans).map(([properties, { attr, op }]) => ({ name: `${domain}:${properties}`, domain, attributes: attr ?? {}, operations: op ?? {} })),
    )
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** operationsOf returns a bean's operations with their signatures, such as gc() or load(int). */
export function operationsOf(bean: Bean): { signature: string; args: Argument[] }[] {
  return Object.entries(bean.operations).flatMap(([name, operations]) =>
    [operations].flat().map(({ args = [] }) => ({ signature: `${name}(${args.map(({ type }) => type).join(',')})`, args })),
  );
}

const isBoolean = (type: string) => /^(boolean|java\.lang\.Boolean)$/.test(type);
const isNumber = (type: string) => /^(byte|short|int|long|float|double|java\.lang\.(Byte|Short|Integer|Long|Float|Double))$/.test(type);
const isText = (type: string) => /^(char|java\.lang\.(Character|String)|javax\.management\.ObjectName)$/.test(type);

/** valueOf parses the text that the user entered as a value of a Java type. */
export function valueOf(type: string, entered: string): unknown {
  if (isText(type)) {
    return entered;
  }
  if (isNumber(type)) {
    if (entered.trim() === '' || !Number.isFinite(Number(entered))) {
      throw new Error(java.notNumber(entered));
    }
    return Number(entered);
  }
  return isBoolean(type) ? entered.trim() === 'true' : (JSON.parse(entered) as unknown);
}

/**
 * components lists the components that a JVM can contain, with the domains of their beans. Each
 * component has its own page.
 */
const components: [name: string, domain: RegExp][] = [
  ['ActiveMQ', /^org\.apache\.activemq/],
  ['Camel', /^org\.apache\.camel$/],
  ['OSGi', /^osgi\./],
];

/** componentsOf returns the components of a JVM. */
export function componentsOf(beans: Bean[]): [name: string, domain: RegExp][] {
  return components.filter(([, domain]) => beans.some((bean) => domain.test(bean.domain)));
}
