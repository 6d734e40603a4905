import { afterEach, describe, expect, it, vi } from 'vitest';
import { addRole, membersOf, removeRole, rolesOf, type RoleBinding } from './members';

afterEach(() => vi.unstubAllGlobals());

const binding = (name: string, role: string, ...subjects: RoleBinding['subjects'] & object): RoleBinding =>
  ({ metadata: { name }, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role }, subjects }) as unknown as RoleBinding;

/** server stores role bindings. If conflict is set, it rejects the first change. */
function server(bindings: RoleBinding[], conflict = false) {
  const requests: { method: string; path: string; body?: RoleBinding }[] = [];
  let conflicts = conflict ? 1 : 0;
  vi.stubGlobal('fetch', (address: string, init: RequestInit) => {
    const method = init.method ?? '';
    const path = address.replace(/^.*\/namespaces\/shop/, '');
    if (method === 'GET') {
      return Promise.resolve(new Response(JSON.stringify({ items: bindings })));
    }
    requests.push({ method, path, body: JSON.parse(String(init.body)) as RoleBinding });
    const refused = conflicts-- > 0;
    return Promise.resolve(new Response(JSON.stringify(refused ? { kind: 'Status', reason: 'Conflict', message: 'changed' } : {}), { status: refused ? 409 : 200 }));
  });
  return requests;
}

const ann = { kind: 'User' as const, name: 'ann', apiGroup: 'rbac.authorization.k8s.io' };
const ben = { ...ann, name: 'ben' };
const view = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole' as const, name: 'view' };

describe('Membership', () => {
  it('joins the roles of each member', () => {
    const builder = { kind: 'ServiceAccount' as const, name: 'builder' };
    const bindings = [binding('a', 'view', ben, ann, builder), binding('b', 'edit', ann), binding('c', 'view', ann, { ...builder, namespace: 'shop' })];
    const members = membersOf(bindings, 'shop').map(({ subject, roles }) => [subject.namespace, subject.name, roles.map((role) => role.name).join()]);
    expect(members).toEqual([
      [undefined, 'ann', 'edit,view'],
      [undefined, 'ben', 'view'],
      ['shop', 'builder', 'view'],
    ]);
  });

  it('adds a member to the binding of the role, even after a conflict', async () => {
    const requests = server([binding('viewers', 'view', ann)], true);
    await addRole('shop', ben, view);
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['PUT /rolebindings/viewers', 'PUT /rolebindings/viewers']);
    expect(requests[1]?.body?.subjects).toEqual([ann, ben]);
  });

  it('creates a binding whose name is free', async () => {
    const requests = server([binding('view', 'edit', ann)]);
    await addRole('shop', ben, view);
    expect(requests[0]?.body).toMatchObject({ metadata: { name: 'view-2' }, roleRef: view, subjects: [ben] });
  });

  it('removes a role from all bindings and deletes empty ones', async () => {
    const requests = server([binding('first', 'view', ann, ben), binding('second', 'view', ben), binding('other', 'edit', ben)]);
    await removeRole('shop', ben, view);
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['PUT /rolebindings/first', 'DELETE /rolebindings/second']);
    expect(requests[0]?.body?.subjects).toEqual([ann]);
  });

  it('offers the roles for members of projects, and the roles of the project', async () => {
    const roles = (names: string[]) => new Response(JSON.stringify({ items: names.map((name) => ({ metadata: { name } })) }));
    vi.stubGlobal('fetch', (path: string) => Promise.resolve(path.endsWith('/clusterroles') ? roles(['cluster-admin', 'edit', 'system:image-puller', 'view']) : roles(['own'])));
    expect((await rolesOf('shop')).map(({ ref }) => `${ref.kind} ${ref.name}`)).toEqual([
      'ClusterRole admin',
      'ClusterRole edit',
      'ClusterRole view',
      'Role own',
      'ClusterRole system:image-puller',
    ]);
  });

  it('offers only the cluster roles that an administrator has listed', async () => {
    const items = ['auditor', 'edit', 'view'].map((name) => ({ metadata: { name } }));
    vi.stubGlobal('fetch', (path: string) => Promise.resolve(new Response(JSON.stringify({ items: path.endsWith('/clusterroles') ? items : [] }))));
    expect((await rolesOf('shop', ['auditor', 'view'])).map(({ ref }) => ref.name)).toEqual(['view', 'auditor']);
  });

  it('offers the common roles to users who may not list roles', async () => {
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ kind: 'Status', message: 'no' }), { status: 403 })));
    expect((await rolesOf('shop')).map(({ ref }) => ref.name)).toEqual(['admin', 'edit', 'view']);
  });
});
