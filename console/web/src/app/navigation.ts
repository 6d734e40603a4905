import type { Resources } from '../api/discovery';
import type { Rights } from '../api/rights';
import { text } from '../text/en';

/** Entry is a link in the navigation. */
export interface Entry {
  label: string;
  path: string;
}

export interface Section {
  label: string;
  entries: Entry[];
}

/** projectSections contains the sections of a project's navigation, with their resource IDs. */
const projectSections: [string, string[]][] = [
  [
    text.nav.applications,
    [
      'deployments.apps',
      'deploymentconfigs.apps.openshift.io',
      'statefulsets.apps',
      'daemonsets.apps',
      'jobs.batch',
      'cronjobs.batch',
      'pods',
      'services',
      'routes.route.openshift.io',
      'ingresses.networking.k8s.io',
      'serviceinstances.servicecatalog.k8s.io',
      'servicebindings.servicecatalog.k8s.io',
    ],
  ],
  [
    text.nav.builds,
    ['buildconfigs.build.openshift.io', 'builds.build.openshift.io', 'imagestreams.image.openshift.io', 'templates.template.openshift.io'],
  ],
  [
    text.nav.resources,
    [
      'configmaps',
      'secrets',
      'resourcequotas',
      'limitranges',
      'horizontalpodautoscalers.autoscaling',
      'poddisruptionbudgets.policy',
      'networkpolicies.networking.k8s.io',
      'serviceaccounts',
      'rolebindings.rbac.authorization.k8s.io',
    ],
  ],
  [text.nav.storage, ['persistentvolumeclaims', 'volumesnapshots.snapshot.storage.k8s.io']],
];

/** clusterSections contains the sections of the cluster's navigation. */
const clusterSections: [string, string[]][] = [
  [text.nav.compute, ['nodes', 'namespaces', 'priorityclasses.scheduling.k8s.io', 'runtimeclasses.node.k8s.io']],
  [
    text.nav.storage,
    ['persistentvolumes', 'storageclasses.storage.k8s.io', 'csidrivers.storage.k8s.io', 'csinodes.storage.k8s.io', 'volumeattachments.storage.k8s.io'],
  ],
  [
    text.nav.access,
    [
      'users.user.openshift.io',
      'identities.user.openshift.io',
      'groups.user.openshift.io',
      'clusterroles.rbac.authorization.k8s.io',
      'clusterrolebindings.rbac.authorization.k8s.io',
      'securitycontextconstraints.security.openshift.io',
      'oauthclients.oauth.openshift.io',
    ],
  ],
  [
    text.nav.cluster,
    [
      'clusterresourcequotas.quota.openshift.io',
      'images.image.openshift.io',
      'hostsubnets.network.openshift.io',
      'netnamespaces.network.openshift.io',
      'customresourcedefinitions.apiextensions.k8s.io',
      'apiservices.apiregistration.k8s.io',
    ],
  ],
];

/** label returns a resource's readable name, such as Config Maps. */
export function label(id: string, resources: Resources): string {
  const resource = resources.get(id);
  const name = words(resource?.kind ?? id);
  const isPlural = name.endsWith('Metrics') || (resource !== undefined && resource.kind.toLowerCase() === resource.name);
  return text.resources[id] ?? (isPlural ? name : plural(name));
}

/**
 * words separates the words in a kind's name: PersistentVolumeClaim becomes Persistent Volume
 * Claim.
 */
export function words(kind: string): string {
  return kind.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2');
}

function plural(name: string): string {
  if (/[^aeiou]y$/i.test(name)) {
    return name.slice(0, -1) + 'ies';
  }
  return /(s|x|ch)$/i.test(name) ? name + 'es' : name + 's';
}

/**
 * sectionsOf returns the navigation for a project or for the cluster. It contains the resources
 * that the server serves and that the user may list.
 */
export function sectionsOf(project: string | undefined, resources: Resources, rights: Rights): Section[] {
  const sections = project === undefined ? clusterSections : projectSections;
  const root = project === undefined ? '/cluster' : `/project/${project}`;
  return sections
    .map(([title, ids]) => ({
      label: title,
      entries: ids
        .filter((id) => {
          const r = resources.get(id);
          return r !== undefined && r.verbs.includes('list') && rights.may('list', r.group, r.name);
        })
        .map((id) => ({ label: label(id, resources), path: `${root}/${id}` })),
    }))
    .filter((section) => section.entries.length > 0);
}

/**
 * mayImport reports whether the user may create objects of any resource in a project or in the
 * cluster. It ignores resources whose objects are not stored, such as reviews.
 */
export function mayImport(project: string | undefined, resources: Resources, rights: Rights): boolean {
  return [...resources.values()].some((r) => r.namespaced === (project !== undefined) && r.verbs.includes('delete') && rights.may('create', r.group, r.name));
}
