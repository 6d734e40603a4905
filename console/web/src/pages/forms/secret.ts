import { encode } from '../../api/base64';
import { text } from '../../text/en';
import { pairsOf, present, type Form, type Input, type Values } from './model';

const t = text.forms.secret;

/** kinds contains the types of secrets. */
const kinds = ['generic', 'basic', 'ssh', 'registry', 'tls', 'webhook'] as const;
type Kind = (typeof kinds)[number];

const keyPattern = /^[-._a-zA-Z0-9]{1,253}$/;

const of = (...shown: Kind[]) => (values: Values) => shown.includes(values.kind as Kind);

/** pairsProblem returns the problem with the keys of a secret or config map, if there is one. */
export function pairsProblem(value: string): string | undefined {
  const keys = pairsOf(value).map(([key]) => key);
  return keys.length > 0 && keys.every((key) => keyPattern.test(key)) && new Set(keys).size === keys.length ? undefined : t.keyInvalid;
}

const inputs: Input[] = [
  { key: 'kind', label: text.details.type, type: 'select', choices: kinds.map((value) => ({ value, label: t.kinds[value] })) },
  { key: 'pairs', label: t.data, type: 'pairs', required: true, isShown: of('generic'), problem: pairsProblem },
  { key: 'server', label: t.server, required: true, help: t.serverHelp, isShown: of('registry') },
  { key: 'username', label: t.username, required: true, isShown: of('registry') },
  { key: 'user', label: t.username, isShown: of('basic') },
  { key: 'password', label: t.password, type: 'password', required: true, isShown: of('basic', 'registry') },
  { key: 'email', label: t.email, isShown: of('registry') },
  { key: 'sshKey', label: t.sshKey, type: 'area', required: true, isShown: of('ssh') },
  { key: 'certificate', label: t.certificate, type: 'area', required: true, isShown: of('tls') },
  { key: 'key', label: t.key, type: 'area', required: true, isShown: of('tls') },
  { key: 'webhook', label: t.webhook, type: 'password', required: true, isShown: of('webhook') },
  { key: 'authority', label: t.authority, type: 'area', isShown: of('basic') },
  { key: 'gitconfig', label: t.gitconfig, type: 'area', isShown: of('basic', 'ssh') },
];

/**
 * withNewline appends a newline to a file that lacks one, because ssh rejects a key without a
 * newline.
 */
const withNewline = (value: string | undefined) => (value ? value.trimEnd() + '\n' : '');

const data: Record<Kind, (v: Values) => { type: string; stringData: Record<string, unknown> }> = {
  generic: (v) => ({ type: 'Opaque', stringData: Object.fromEntries(pairsOf(v.pairs)) }),
  basic: (v) => ({
    type: 'kubernetes.io/basic-auth',
    stringData: present({ username: v.user, password: v.password, 'ca.crt': withNewline(v.authority), '.gitconfig': withNewline(v.gitconfig) }),
  }),
  ssh: (v) => ({ type: 'kubernetes.io/ssh-auth', stringData: present({ 'ssh-privatekey': withNewline(v.sshKey), '.gitconfig': withNewline(v.gitconfig) }) }),
  registry: (v) => ({ type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': dockerConfig(v) } }),
  tls: (v) => ({ type: 'kubernetes.io/tls', stringData: { 'tls.crt': withNewline(v.certificate), 'tls.key': withNewline(v.key) } }),
  webhook: (v) => ({ type: 'Opaque', stringData: { WebHookSecretKey: v.webhook } }),
};

/** dockerConfig returns the credentials file that registry clients read. */
function dockerConfig(v: Values): string {
  const auth = encode(`${v.username}:${v.password}`);
  return JSON.stringify({ auths: { [v.server ?? '']: present({ username: v.username, password: v.password, email: v.email, auth }) } });
}

/** secretForm creates a secret. Each type of secret has its own fields. */
export const secretForm: Form = {
  inputs,
  object: (values) => ({ apiVersion: 'v1', kind: 'Secret', ...data[values.kind as Kind](values) }),
};
