import { edits } from '../../../text/edits';
import { count, listOf, toList, type Input, type Values } from '../../forms/model';

/** Handler is the action of a container's probe or hook. Exactly one of its fields is set. */
export interface Handler {
  httpGet?: { path?: string; port?: number | string; scheme?: string };
  tcpSocket?: { port?: number | string };
  exec?: { command?: string[] };
  grpc?: { port?: number; service?: string };
  sleep?: { seconds?: number };
}

export type Action = keyof Handler;

const actions: Action[] = ['httpGet', 'tcpSocket', 'exec', 'grpc', 'sleep'];

const t = edits.handler;

const portName = /^(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$/;

function portProblem(value: string): string | undefined {
  const number = Number(value);
  const isPort = /^\d+$/.test(value) ? number >= 1 && number <= 65535 : portName.test(value);
  return isPort ? undefined : t.portInvalid;
}

/** commandProblem describes what is wrong with a command that is given as a list. */
export function commandProblem(value: string): string | undefined {
  return listOf(value)[0]?.trim() ? undefined : t.commandInvalid;
}

/** handlerInputs returns the fields for a handler. Without an action, there are no fields. */
export function handlerInputs(prefix: string, offered: Action[]): Input[] {
  const of = (...shown: Action[]) => (values: Values) => shown.includes(values[`${prefix}action`] as Action);
  return [
    { key: `${prefix}action`, label: t.action, type: 'select', choices: ['', ...offered].map((value) => ({ value, label: t.actions[value] ?? value })) },
    { key: `${prefix}path`, label: t.path, isShown: of('httpGet'), problem: (value) => (value.startsWith('/') ? undefined : t.pathInvalid) },
    { key: `${prefix}scheme`, label: t.scheme, type: 'select', isShown: of('httpGet'), choices: ['HTTP', 'HTTPS'].map((value) => ({ value, label: value })) },
    { key: `${prefix}port`, label: t.port, required: true, isShown: of('httpGet', 'tcpSocket', 'grpc'), help: t.portHelp, problem: portProblem },
    { key: `${prefix}service`, label: t.service, isShown: of('grpc') },
    { key: `${prefix}command`, label: t.command, type: 'list', required: true, isShown: of('exec'), help: t.commandHelp, problem: commandProblem },
    { key: `${prefix}seconds`, label: t.seconds, type: 'number', required: true, isShown: of('sleep'), problem: count(1) },
  ];
}

/** actionOf returns a handler's action, or undefined. */
function actionOf(handler: Handler | undefined): Action | undefined {
  return actions.find((action) => handler?.[action] !== undefined);
}

/** handlerValues returns the values in the fields for a handler. */
export function handlerValues(prefix: string, handler: Handler | undefined): Values {
  const { httpGet, tcpSocket, exec, grpc, sleep } = handler ?? {};
  return {
    [`${prefix}action`]: actionOf(handler) ?? '',
    [`${prefix}path`]: httpGet?.path ?? '',
    [`${prefix}scheme`]: httpGet?.scheme ?? 'HTTP',
    [`${prefix}port`]: String((httpGet ?? tcpSocket ?? grpc)?.port ?? ''),
    [`${prefix}service`]: grpc?.service ?? '',
    [`${prefix}command`]: toList(exec?.command ?? []),
    [`${prefix}seconds`]: String(sleep?.seconds ?? ''),
  };
}

/**
 * handlerOf returns the handler with the given values, or undefined if there is no action. It keeps
 * settings that the form does not show, such as a request's headers.
 */
export function handlerOf(prefix: string, values: Values, before: Handler | undefined): Handler | undefined {
  const value = (name: string) => values[prefix + name] ?? '';
  const port = /^\d+$/.test(value('port')) ? Number(value('port')) : value('port');
  switch (value('action') as Action) {
    case 'httpGet':
      return { httpGet: { ...before?.httpGet, path: value('path') || undefined, port, scheme: value('scheme') } };
    case 'tcpSocket':
      return { tcpSocket: { ...before?.tcpSocket, port } };
    case 'exec':
      return { exec: { command: listOf(value('command')) } };
    case 'grpc':
      return { grpc: { port: Number(port), service: value('service') || undefined } };
    case 'sleep':
      return { sleep: { seconds: Number(value('seconds')) } };
    default:
      return undefined;
  }
}

/** withoutHandler returns the fields of a probe that are not part of its handler. */
export function withoutHandler<T extends Handler>(of: T): Omit<T, Action> {
  return Object.fromEntries(Object.entries(of).filter(([name]) => !actions.includes(name as Action))) as Omit<T, Action>;
}
