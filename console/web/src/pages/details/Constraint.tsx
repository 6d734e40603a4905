import { Alert, ExpandableSection } from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { whoCan } from '../../api/access';
import { constraintKey, reviewPod } from '../../api/constraint';
import { pathOf } from '../../api/discovery';
import { useResources, useRights } from '../../api/hooks';
import { get } from '../../api/http';
import type { LooseObject } from '../../api/types';
import { linkTo } from '../../app/links';
import { access } from '../../text/access';
import { Loading } from '../../ui/Loading';
import { HolderList } from '../access/HolderList';

const t = access.constraint;
const constraintID = 'securitycontextconstraints.security.openshift.io';

/**
 * Constraint shows why the server chose a pod's security context constraint, and which users may
 * use the constraint.
 */
export default function Constraint({ pod }: { pod: LooseObject }) {
  const name = pod.metadata.annotations?.[constraintKey] ?? '';
  const account = (pod.spec as { serviceAccountName?: string }).serviceAccountName || 'default';
  const rights = useRights(undefined);
  const resource = useResources()?.get(constraintID);
  const mayReview = useRights(pod.metadata.namespace).may('create', 'security.openshift.io', 'podsecuritypolicysubjectreviews');
  const review = useQuery({ queryKey: ['constraint', pod.metadata.uid], queryFn: () => reviewPod(pod), enabled: mayReview, retry: false });
  const mayRead = resource !== undefined && rights.may('get', resource.group, resource.name, name);
  const details = useQuery({
    queryKey: ['scc', name],
    queryFn: () => get<{ priority?: number | null }>(pathOf(resource ?? { group: '', version: '', name: '', namespaced: false }, undefined, name)),
    enabled: mayRead,
    retry: false,
  }).data;
  const mayAsk = rights.may('create', 'authorization.openshift.io', 'resourceaccessreviews');
  const holders = useQuery({
    queryKey: ['scc-users', name],
    queryFn: () => whoCan({ verb: 'use', group: 'security.openshift.io', resource: 'securitycontextconstraints', name, project: '' }),
    enabled: mayAsk,
    retry: false,
  }).data;
  if (review.isLoading) {
    return <Loading />;
  }
  const { forAccount, forUser } = review.data ?? {};
  return (
    <>
      <p>
        {mayRead && resource ? <Link to={linkTo(resource, undefined, name)}>{name}</Link> : <strong>{name}</strong>}
        {': '}
        {t.chosen(account)} {typeof details?.priority === 'number' && t.priority(details.priority)}
      </p>
      {forAccount !== undefined && <p>{forAccount === '' ? t.none(account) : t.account(account, forAccount)}</p>}
      {forUser !== undefined && <p>{forUser === '' ? t.ownNone : t.own(forUser)}</p>}
      {review.error && <Alert isInline component="h3" variant="warning" title={review.error.message} />}
      {holders && (
        <ExpandableSection toggleText={t.users(name)}>
          <HolderList holders={holders} />
        </ExpandableSection>
      )}
    </>
  );
}
