import { afterEach, describe, expect, it, vi } from 'vitest';
import { completionsAt } from './completions';
import { problemsOf } from './problems';
import { schemaOf, type Definitions, type Lookup } from './schema';

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const definitions: Definitions = {
  Deployment: {
    type: 'object',
    'x-kubernetes-group-version-kind': [{ group: 'apps', version: 'v1', kind: 'Deployment' }],
    properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { allOf: [ref('Meta')], description: 'Who it is.' }, spec: { allOf: [ref('Spec')] } },
  },
  Meta: { type: 'object', properties: { name: { type: 'string' }, labels: { type: 'object', additionalProperties: { type: 'string' } } } },
  Spec: {
    type: 'object',
    properties: {
      replicas: { type: 'integer' },
      paused: { type: 'boolean' },
      strategy: { type: 'string', enum: ['Recreate', 'RollingUpdate'] },
      maxSurge: ref('IntOrString'),
      limits: { type: 'object', additionalProperties: ref('Quantity') },
      containers: { type: 'array', items: { allOf: [ref('Container')], default: {} } as never },
      extra: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { known: { type: 'integer' } } },
      ratio: { type: 'number' },
      raw: { type: 'object' },
      anything: {},
      hook: { type: 'object', required: ['url', 'method'], properties: { url: { type: 'string' }, method: { type: 'string', default: 'POST' } } },
    },
  },
  Container: { type: 'object', required: ['name'], properties: { name: { type: 'string', default: '' }, image: { type: 'string' }, command: { type: 'array', items: { type: 'string' } }, parent: ref('Container') } },
  IntOrString: { oneOf: [{ type: 'integer' }, { type: 'string' }], format: 'int-or-string' },
  Quantity: { oneOf: [{ type: 'string' }, { type: 'number' }] },
};
const lookup: Lookup = async (apiVersion, kind) => (apiVersion === 'apps/v1' && kind === 'Deployment' ? { schema: definitions.Deployment ?? {}, definitions } : undefined);

const head = 'apiVersion: apps/v1\nkind: Deployment\n';
const found = async (body: string) => (await problemsOf(head + body, lookup)).map(({ line, message }) => `${line} ${message}`);

describe('problemsOf', () => {
  it('accepts objects that match the schema', async () => {
    const body = [
      'metadata: {name: a, labels: {b: c}}',
      'spec:',
      '  replicas: 2',
      '  strategy: Recreate',
      '  maxSurge: 25%',
      '  limits: {cpu: 1, memory: 1Gi}',
      '  containers: [{name: a, command: [run], parent: {name: b, parent: {name: b}}}]',
      '  extra: {known: 1, unknown: {a: b}}',
      '  ratio: 1',
      '  raw: {a: [1]}',
      '  anything: [1]',
      '  paused: null',
      '  hook: {url: a}',
    ];
    expect(await found(body.join('\n'))).toEqual([]);
  });

  it.each([
    ['spec:\n  replica: 1', '4 The field spec.replica does not exist.'],
    ['spec:\n  replicas: "1"', '4 spec.replicas must be a whole number.'],
    ['spec:\n  replicas: 1.5', '4 spec.replicas must be a whole number.'],
    ['spec:\n  maxSurge: [1]', '4 spec.maxSurge must be a whole number or a string.'],
    ['spec: []', '3 spec must be an object.'],
    ['spec:\n  containers:\n  - image: a\n  - name: b', '5 The field spec.containers[0].name is missing.'],
    ['spec:\n  hook: {}', '4 The field spec.hook.url is missing.'],
    ['spec:\n  containers:\n  - name: a\n    image: 1', '6 spec.containers[0].image must be a string.'],
    ['spec:\n  containers:\n  - name: a\n    parent: {name: a, names: b}', '6 The field spec.containers[0].parent.names does not exist.'],
    ['spec:\n  strategy: Rolling', '4 spec.strategy must be one of Recreate, RollingUpdate.'],
    ['metadata:\n  labels: {a: true}', '4 metadata.labels.a must be a string.'],
    ['spec:\n  extra: {known: a}', '4 spec.extra.known must be a whole number.'],
  ])('names the line of what is wrong in %j', async (body, problem) => {
    expect(await found(body)).toEqual([problem]);
  });

  it('checks each document, the items of lists, and JSON', async () => {
    const wrong = '{"apiVersion": "apps/v1", "kind": "Deployment", "spek": {}}';
    const source = `${head}---\napiVersion: v1\nkind: List\nitems:\n- ${wrong}\n---\n${wrong}\n---\napiVersion: v1\nkind: Unknown\nspek: 1\n`;
    expect((await problemsOf(source, lookup)).map(({ line }) => line)).toEqual([7, 9]);
  });

  it('reports syntax errors with their lines, and ends for aliases', async () => {
    expect(await problemsOf('a: b\nc: [1\n', lookup)).toMatchObject([{ isSyntax: true }]);
    expect(await found('spec: &spec\n  replicas: 1\n  extra: *spec\n')).toEqual([]);
  });
});

describe('completionsAt', () => {
  const at = async (marked: string, withHead = true) => {
    const source = (withHead ? head : '') + marked;
    const position = source.indexOf('|');
    const result = await completionsAt(source.replace('|', ''), position, lookup);
    return { names: result?.options.map(({ label }) => label) ?? [], result, position };
  };

  it('offers the fields that an object does not have yet', async () => {
    expect((await at('|\nmetadata: {}\n')).names).toEqual(['spec']);
    expect((await at('spec:\n  replicas: 1\n  pa|\n  ratio: 1\nmetadata:\n')).names).not.toContain('ratio');
    const { result, position } = await at('spec:\n  pau|\n');
    expect(result?.from).toBe(position - 3);
    expect(result?.options.find(({ label }) => label === 'paused')).toEqual({ label: 'paused', type: 'boolean', description: '', insert: 'paused: ' });
  });

  it.each(['spec:\n  containers:\n  - name: a\n    |', 'spec:\n  containers:\n    - name: a\n      |\n    - name: b\n      image: c', 'spec:\n  containers:\n  -  command:\n     - run\n     name: a\n     |'])(
    'knows the items of lists: %j',
    async (marked) => {
      expect((await at(marked)).names).toContain('image');
      expect((await at(marked)).names).not.toContain('name');
    },
  );

  it('completes the first field of an item', async () => {
    expect((await at('spec:\n  containers:\n  - |')).names).toEqual(['name', 'image', 'command', 'parent']);
  });

  it('inserts the text after a name', async () => {
    const { result } = await at('spec:\n  con|');
    const insert = (name: string) => result?.options.find(({ label }) => label === name)?.insert;
    expect([insert('containers'), insert('limits'), insert('replicas')]).toEqual(['containers:\n  - ', 'limits:\n    ', 'replicas: ']);
    expect((await at('spec:\n  con|: 1')).result?.options.find(({ label }) => label === 'containers')?.insert).toBe('containers');
  });

  it('offers the values of a field', async () => {
    expect((await at('spec:\n  strategy: R|')).names).toEqual(['Recreate', 'RollingUpdate']);
    expect((await at('spec:\n  paused: |')).names).toEqual(['true', 'false']);
  });

  it('considers only the document of the cursor', async () => {
    expect((await at('---\napiVersion: v1\nkind: Unknown\n|')).names).toEqual([]);
    expect((await at(`apiVersion: v1\nkind: Unknown\n---\n${head}spec:\n  |`, false)).names).toContain('replicas');
    expect((await at('spec:\n  labels: {a: "b c |')).names).toEqual([]);
  });
});

describe('schemaOf', () => {
  afterEach(() => vi.unstubAllGlobals());

  it('requests the definitions of a group version once, and again after a failure', async () => {
    const url = '/openapi/v3/apis/apps/v1?hash=1';
    const request = vi.fn<typeof fetch>().mockImplementation(async (target) =>
      new Response(JSON.stringify(String(target).endsWith('/openapi/v3') ? { paths: { 'apis/apps/v1': { serverRelativeURL: url } } } : { components: { schemas: definitions } })),
    );
    vi.stubGlobal('fetch', vi.fn<typeof fetch>().mockResolvedValue(new Response('no', { status: 403 })));
    expect(await schemaOf('apps/v1', 'Deployment')).toBeUndefined();
    vi.stubGlobal('fetch', request);
    expect((await schemaOf('apps/v1', 'Deployment'))?.schema).toBe((await schemaOf('apps/v1', 'Deployment'))?.schema ?? 'none');
    expect(await schemaOf('apps/v1', 'Other')).toBeUndefined();
    expect(await schemaOf('none/v1', 'Deployment')).toBeUndefined();
    expect(request.mock.calls.map(([target]) => target)).toEqual(['/console/proxy/openapi/v3', `/console/proxy${url}`, '/console/proxy/openapi/v3']);
  });
});
