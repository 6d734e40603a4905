/** resources contains the names of object lists in the navigation, keyed by resource and group. */
export const resources: Record<string, string> = {
  'deploymentconfigs.apps.openshift.io': 'Deployment Configs',
  'horizontalpodautoscalers.autoscaling': 'Autoscalers',
  'poddisruptionbudgets.policy': 'Disruption Budgets',
  'buildconfigs.build.openshift.io': 'Build Configs',
  'rolebindings.rbac.authorization.k8s.io': 'Role Bindings',
  'csidrivers.storage.k8s.io': 'CSI Drivers',
  'csinodes.storage.k8s.io': 'CSI Nodes',
  'clusterresourcequotas.quota.openshift.io': 'Cluster Quotas',
  'customresourcedefinitions.apiextensions.k8s.io': 'Custom Resources',
  'apiservices.apiregistration.k8s.io': 'API Services',
  'securitycontextconstraints.security.openshift.io': 'Security Context Constraints',
  'oauthclients.oauth.openshift.io': 'OAuth Clients',
  events: 'Events',
  resourcequotas: 'Quotas',
  limitranges: 'Limit Ranges',
};
