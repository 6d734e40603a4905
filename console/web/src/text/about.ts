/** about contains the text of the About and Other resources pages. */
export const about = {
  title: 'About',
  body: 'Slipway is a container platform that is compatible with OpenShift 3, on Kubernetes.',
  version: 'Kubernetes',
  development: 'Unknown, because this is a development build',
  commit: 'Commit',
  built: 'Built',
  account: 'Account',
  groups: 'Groups',
  address: 'Address of the API',
  other: {
    title: 'Other resources',
    filter: 'Find by kind or API group',
    kind: 'Kind',
    group: 'API group',
    version: 'Version',
    core: 'core',
    none: 'No resource matches',
  },
};
