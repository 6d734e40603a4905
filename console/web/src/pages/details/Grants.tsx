import { Link } from 'react-router';
import { useObjects, useRights } from '../../api/hooks';
import { grantsOf, virtualGroups, type Binding } from '../../api/roles';
import type { KubeObject, LooseObject } from '../../api/types';
import { admin } from '../../text/admin';
import { DataTable } from '../../ui/DataTable';
import { Loading } from '../../ui/Loading';

const t = admin.users;
const root = '/apis/rbac.authorization.k8s.io/v1';

interface Group extends KubeObject {
  users?: string[] | null;
}

/** Grants shows a user's or group's roles in all projects, and a user's groups. */
export default function Grants({ of }: { of: LooseObject }) {
  const { name } = of.metadata;
  const isUser = of.kind === 'User';
  const inProjects = useObjects<Binding>(`${root}/rolebindings`);
  const inCluster = useObjects<Binding>(`${root}/clusterrolebindings`);
  const groups = useObjects<Group>('/apis/user.openshift.io/v1/groups');
  const rights = useRights(undefined);
  const snapshots = [inProjects, inCluster, ...(isUser ? [groups] : [])];
  const error = snapshots.find((snapshot) => snapshot.error && !snapshot.loaded)?.error;
  if (error) {
    return <p>{error.message}</p>;
  }
  if (!snapshots.every(({ loaded }) => loaded)) {
    return <Loading />;
  }
  const own = isUser ? groups.items.filter(({ users }) => users?.includes(name)).map(({ metadata }) => metadata.name).sort() : [name];
  const grants = grantsOf([...inCluster.items, ...inProjects.items], isUser ? name : '', isUser ? [...own, ...virtualGroups] : own);
  const mayGet = rights.may('get', 'user.openshift.io', 'groups');
  return (
    <>
      {own.length > 0 && isUser && (
        <p>
          {t.groups}:{' '}
          {own.map((group, index) => (
            <span key={group}>
              {index > 0 && ', '}
              {mayGet ? <Link to={`/cluster/groups.user.openshift.io/${encodeURIComponent(group)}`}>{group}</Link> : group}
            </span>
          ))}
        </p>
      )}
      <DataTable
        label={t.roles}
        items={grants}
        keyOf={({ key }) => key}
        empty={t.noRoles}
        columns={[
          { title: t.role, cell: ({ role }) => role },
          { title: t.where, cell: ({ project }) => (project ? <Link to={`/project/${project}/membership`}>{project}</Link> : t.everywhere) },
          { title: t.through, cell: ({ group }) => group || t.directly },
        ]}
      />
    </>
  );
}
