import { expect, it } from 'vitest';
import type { Template } from './catalog';
import { createCommandOf, downloadCommandOf, templateCommandOf } from './equivalent';
import type { KubeObject } from './types';

const parameters = [{ name: 'NAME', value: 'web' }, { name: 'TITLE', value: '' }, { name: 'USER', generate: 'expression' }, { name: 'DB_PASSWORD' }];
const template = { metadata: { namespace: 'openshift', name: 'page' }, parameters } as unknown as Template;

it('contains the values that differ from the defaults of the template', () => {
  expect(templateCommandOf(template, 'blog', { NAME: 'web', TITLE: "It's 1", USER: '', DB_PASSWORD: '' })).toEqual({
    command: `oc new-app -n blog --template=openshift/page -p 'TITLE=It'\\''s 1'`,
    lacksSecrets: false,
  });
});

it('contains variables for values that can be secret', () => {
  expect(templateCommandOf(template, 'blog', { NAME: '', USER: 'ann', DB_PASSWORD: 'opens3same' })).toEqual({
    command: 'oc new-app -n blog --template=openshift/page -p NAME= -p USER="$USER" -p DB_PASSWORD="$DB_PASSWORD"',
    lacksSecrets: true,
  });
});

it('contains placeholders for the parameters of a service that can be secret', () => {
  const parameters = { size: 1, admin_password: 'opens3same', nested: [{ apiToken: { value: 'opens3same' }, user: 'ann' }] };
  const objects = [{ kind: 'ServiceInstance', spec: { parameters } }, { kind: 'ServiceBinding', spec: { secretName: 'db' } }] as unknown as KubeObject[];
  const { command, lacksSecrets } = createCommandOf(objects, 'blog');
  expect(lacksSecrets).toBe(true);
  const [instance, binding] = (JSON.parse(command.replace(/^.*\n/, '').replace(/\nEND$/, '')) as { items: object[] }).items;
  expect(instance).toMatchObject({ spec: { parameters: { size: 1, admin_password: '<secret>', nested: [{ apiToken: '<secret>', user: 'ann' }] } } });
  expect(binding).toEqual(objects[1]);
  expect(parameters.admin_password).toBe('opens3same');
});

it('creates objects with one command that no value can end', () => {
  const { command, lacksSecrets } = createCommandOf([{ kind: 'A', data: 'x\nEND\nrm <secret>' } as unknown as KubeObject], 'blog');
  expect(lacksSecrets).toBe(false);
  expect(command.split('\n').filter((line) => line === 'END')).toHaveLength(1);
  expect(JSON.parse(command.replace(/^.*\n/, '').replace(/\nEND$/, ''))).toEqual({ apiVersion: 'v1', kind: 'List', items: [{ kind: 'A', data: 'x\nEND\nrm <secret>' }] });
});

it('quotes the names of directories, which a container chooses', () => {
  expect(downloadCommandOf('blog', 'web-1', 'web', '/var/log/')).toBe('oc cp blog/web-1:/var/log/FILE FILE -c web');
  expect(downloadCommandOf('blog', 'web-1', 'web', "/tmp/$(id)';id")).toBe(`oc cp 'blog/web-1:/tmp/$(id)'\\'';id/FILE' FILE -c web`);
});
