import { describe, expect, it, vi } from 'vitest';
import { commandOf, configOf, findImage, findTag, imageObjects, nameOf, tagsOf, validImage } from './deploy';
import { dockerCommandOf, dockerObjects, objectsOf, type Source } from './source';
import type { KubeObject } from './types';

type Any = Record<string, never>;
const kinds = (objects: KubeObject[]) => objects.map(({ kind }) => kind);
const specOf = (objects: KubeObject[], kind: string) => (objects.find((object) => object.kind === kind) as unknown as { spec: Any }).spec;

it('recognizes references of images', () => {
  const good = ['app', 'app:1.0', 'team/app', 'registry.example.com:5000/team/app:1', `r.example.com/a@sha256:${'0'.repeat(64)}`];
  const bad = ['', 'No Name!', 'https://example.com/app', 'app:', 'app@sha256:1', '-x /y'];
  expect([...good, ...bad].filter(validImage)).toEqual(good);
  expect(good.map(nameOf)).toEqual(['app', 'app', 'app', 'app', 'a']);
});

it('reads the configuration of an image', () => {
  expect(configOf({ ExposedPorts: { '8443/tcp': {}, '53/udp': {} }, Env: ['A=b=c', 'D='], User: '1001' })).toEqual({
    ports: [{ port: 53, protocol: 'UDP' }, { port: 8443, protocol: 'TCP' }],
    env: [['A', 'b=c'], ['D', '']],
    user: '1001',
  });
  expect(configOf({})).toEqual({ ports: [], env: [], user: '' });
});

describe('An application from an image', () => {
  const found = { ports: [{ port: 53, protocol: 'UDP' }, { port: 8080, protocol: 'TCP' }], env: [], user: '' };
  const app = { name: 'web', image: 'r.example.com/app:2', env: [['MODE', 'fast']] as [string, string][], route: true };

  it('follows its tag, and has a service and a route', () => {
    const objects = imageObjects({ ...app, found });
    expect(kinds(objects)).toEqual(['ImageStream', 'DeploymentConfig', 'Service', 'Route']);
    expect(specOf(objects, 'ImageStream')).toMatchObject({ tags: [{ name: '2', from: { kind: 'DockerImage', name: 'r.example.com/app:2' } }] });
    expect(specOf(objects, 'DeploymentConfig')).toMatchObject({
      template: { spec: { containers: [{ image: 'web:2', env: [{ name: 'MODE', value: 'fast' }] }] } },
      triggers: [{ imageChangeParams: { from: { kind: 'ImageStreamTag', name: 'web:2' } } }, { type: 'ConfigChange' }],
    });
    expect(specOf(objects, 'Route')).toMatchObject({ port: { targetPort: '8080-tcp' } });
  });

  it('that cannot be read is pulled by its name', () => {
    const objects = imageObjects(app);
    expect(kinds(objects)).toEqual(['DeploymentConfig']);
    expect(specOf(objects, 'DeploymentConfig')).toMatchObject({ template: { spec: { containers: [{ image: 'r.example.com/app:2' }] } }, triggers: [{ type: 'ConfigChange' }] });
  });

  it('in an image stream follows the tag in its project', () => {
    const tag = { namespace: 'openshift', name: 'app:2' };
    const objects = imageObjects({ ...app, tag, found });
    expect(kinds(objects)).toEqual(['DeploymentConfig', 'Service', 'Route']);
    expect(specOf(objects, 'DeploymentConfig')).toMatchObject({ triggers: [{ imageChangeParams: { automatic: true, containerNames: ['web'], from: { kind: 'ImageStreamTag', ...tag } } }, { type: 'ConfigChange' }] });
    expect(commandOf({ ...app, tag }, 'shop')).toBe('oc new-app -n shop --image-stream=openshift/app:2 --name=web --env=MODE=fast');
  });

  it('has a command that does the same', () => {
    expect(commandOf(app, 'shop')).toBe('oc new-app -n shop --docker-image=r.example.com/app:2 --name=web --env=MODE=fast');
  });
});

it('requests the description of an image, and stores nothing', async () => {
  const image = { dockerImageMetadata: { Config: { ExposedPorts: { '80/tcp': {} } } } };
  const request = vi.fn<typeof fetch>();
  const respond = (of: object) => request.mockResolvedValueOnce(new Response(JSON.stringify({ status: { images: [of] } })));
  vi.stubGlobal('fetch', request);
  respond({ status: { status: 'Success' }, image });
  expect((await findImage('shop', 'r.example.com/app')).ports).toEqual([{ port: 80, protocol: 'TCP' }]);
  const [address, options] = request.mock.calls[0] ?? [];
  expect(address).toBe('/console/proxy/apis/image.openshift.io/v1/namespaces/shop/imagestreamimports');
  expect(JSON.parse(String(options?.body))).toMatchObject({ spec: { import: false, images: [{ from: { name: 'r.example.com/app' } }] } });
  respond({ status: { status: 'Failure', message: 'no such image' } });
  await expect(findImage('shop', 'r.example.com/none')).rejects.toThrow('no such image');
});

it('lists the tags with an image, and reads the description of one', async () => {
  const stream = (name: string, ...tags: [string, unknown[] | null][]) => ({ metadata: { name }, status: { tags: tags.map(([tag, items]) => ({ tag, items })) } });
  expect(tagsOf([stream('web', ['2', [{}]], ['none', null]), stream('app', ['1', [{}]]), { metadata: { name: 'empty' } }] as never)).toEqual(['app:1', 'web:2']);
  const image = { dockerImageMetadata: { Config: { ExposedPorts: { '80/tcp': {} } } } };
  const request = vi.fn<typeof fetch>().mockResolvedValueOnce(new Response(JSON.stringify({ image })));
  vi.stubGlobal('fetch', request);
  expect((await findTag({ namespace: 'shop', name: 'web:2' })).ports).toEqual([{ port: 80, protocol: 'TCP' }]);
  expect(request.mock.calls[0]?.[0]).toBe('/console/proxy/apis/image.openshift.io/v1/namespaces/shop/imagestreamtags/web%3A2');
});

describe('An application from source', () => {
  const origin = { uri: 'https://example.com/app.git', ref: 'stable', contextDir: 'web', secret: 'git' };

  it('of a builder image is built again when the image changes', () => {
    const source: Source = { ...origin, name: 'app', namespace: 'openshift', stream: 'python', tag: '3', port: 8080, route: false };
    const objects = objectsOf(source);
    expect(kinds(objects)).toEqual(['ImageStream', 'BuildConfig', 'DeploymentConfig', 'Service']);
    expect(specOf(objects, 'BuildConfig')).toMatchObject({
      source: { type: 'Git', git: { uri: origin.uri, ref: 'stable' }, contextDir: 'web', sourceSecret: { name: 'git' } },
      strategy: { sourceStrategy: { from: { namespace: 'openshift', name: 'python:3' } } },
      triggers: [{ type: 'ImageChange' }, { type: 'ConfigChange' }],
    });
  });

  it('of a Dockerfile uses the one in the repository, or a text', () => {
    const values = { ...origin, name: 'app', text: '', path: 'docker/Dockerfile', port: 80, route: true };
    expect(specOf(dockerObjects(values), 'BuildConfig')).toMatchObject({
      source: { type: 'Git', contextDir: 'web' }, strategy: { type: 'Docker', dockerStrategy: { dockerfilePath: 'docker/Dockerfile' } }, triggers: [{ type: 'ConfigChange' }],
    });
    expect(specOf(dockerObjects({ ...values, text: 'FROM scratch' }), 'BuildConfig')).toMatchObject({
      source: { type: 'Dockerfile', dockerfile: 'FROM scratch' }, strategy: { type: 'Docker', dockerStrategy: {} },
    });
    expect(dockerCommandOf(values, 'shop')).toBe('oc new-app -n shop https://example.com/app.git#stable --strategy=docker --name=app --context-dir=web --source-secret=git');
  });
});
