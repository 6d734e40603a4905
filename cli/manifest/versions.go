package manifest

import "strings"

// adapter makes changes that a new version requires in addition to the new apiVersion. from is the
// old API version. An adapter returns a warning for the object's author, or "".
type adapter func(object map[string]any, from string) string

// rule converts kinds from old API versions to a current version. from and kinds are
// space-separated lists.
type rule struct {
	from, kinds string
	to          string
	adapt       adapter
}

// rules contains the conversions from the versions that Kubernetes removed.
var rules = []rule{
	{"extensions/v1beta1 apps/v1beta1 apps/v1beta2", "Deployment", "apps/v1", deployment},
	{"extensions/v1beta1 apps/v1beta2", "DaemonSet", "apps/v1", daemonSet},
	{"extensions/v1beta1 apps/v1beta2", "ReplicaSet", "apps/v1", workload},
	{"apps/v1beta1 apps/v1beta2", "StatefulSet", "apps/v1", statefulSet},
	{"apps/v1beta1 apps/v1beta2", "ControllerRevision", "apps/v1", nil},
	{"extensions/v1beta1 networking.k8s.io/v1beta1", "Ingress", "networking.k8s.io/v1", ingress},
	{"networking.k8s.io/v1beta1", "IngressClass", "networking.k8s.io/v1", nil},
	{"extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1", nil},
	{"policy/v1beta1", "PodDisruptionBudget", "policy/v1", disruptionBudget},
	{"policy/v1beta1", "Eviction", "policy/v1", nil},
	{"batch/v1beta1 batch/v2alpha1", "CronJob", "batch/v1", nil},
	// extensions/v1 never existed, but OpenShift 3.9's documentation uses it.
	{"extensions/v1 extensions/v1beta1", "Job", "batch/v1", nil},
	{"rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1", "Role RoleBinding ClusterRole ClusterRoleBinding", "rbac.authorization.k8s.io/v1", roleRef},
	{"storage.k8s.io/v1beta1", "StorageClass VolumeAttachment CSIDriver CSINode CSIStorageCapacity", "storage.k8s.io/v1", nil},
	{"scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1alpha1", "PriorityClass", "scheduling.k8s.io/v1", nil},
	{"autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2", nil},
	{"admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1", webhooks},
	{"apiregistration.k8s.io/v1beta1", "APIService", "apiregistration.k8s.io/v1", nil},
	{"apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "apiextensions.k8s.io/v1", customResource},
	{"coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1", nil},
	{"node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1", nil},
}

// groups maps each current API group to the kinds that had no API group in OpenShift 3.
var groups = map[string]string{
	"apps.openshift.io": "DeploymentConfig DeploymentConfigRollback DeploymentRequest",
	"authorization.openshift.io": "Role RoleBinding ClusterRole ClusterRoleBinding RoleBindingRestriction SubjectAccessReview " +
		"LocalSubjectAccessReview ResourceAccessReview LocalResourceAccessReview SelfSubjectRulesReview SubjectRulesReview",
	"build.openshift.io":    "Build BuildConfig BuildRequest",
	"image.openshift.io":    "Image ImageSignature ImageStream ImageStreamImage ImageStreamImport ImageStreamMapping ImageStreamTag",
	"network.openshift.io":  "ClusterNetwork EgressNetworkPolicy HostSubnet NetNamespace",
	"oauth.openshift.io":    "OAuthAccessToken OAuthAuthorizeToken OAuthClient OAuthClientAuthorization",
	"project.openshift.io":  "Project ProjectRequest",
	"quota.openshift.io":    "AppliedClusterResourceQuota ClusterResourceQuota",
	"route.openshift.io":    "Route",
	"security.openshift.io": "PodSecurityPolicyReview PodSecurityPolicySelfSubjectReview PodSecurityPolicySubjectReview SecurityContextConstraints",
	"template.openshift.io": "Template",
	"user.openshift.io":     "Group Identity User UserIdentityMapping",
}

// scaled maps kinds to their current API versions. In OpenShift 3, an autoscaler could refer to
// these kinds without a version.
var scaled = map[string]string{
	"DeploymentConfig": "apps.openshift.io/v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1",
}

// current returns the current version of a kind in an old version, and the kind's adapter, or nil
// if it has no adapter. The version is "" if the kind needs no conversion.
func current(version, kind string) (string, adapter) {
	if kind == "" {
		return "", nil
	}
	if version == "v1" {
		for group, kinds := range groups {
			if has(kinds, kind) {
				return group + "/v1", nil
			}
		}
		return "", nil
	}
	for _, rule := range rules {
		if has(rule.from, version) && has(rule.kinds, kind) {
			return rule.to, rule.adapt
		}
	}
	return "", nil
}

// has reports whether a space-separated list contains a word.
func has(list, word string) bool {
	return strings.Contains(" "+list+" ", " "+word+" ")
}
