package manifest

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// rbacObjects returns the service accounts and their RBAC objects. The node service account has no
// permissions, because registration does not use the API server.
func (c Config) rbacObjects() []runtime.Object {
	account := func(suffix string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: c.meta(suffix)}
	}
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Name: c.name() + "-controller", Namespace: c.Namespace}}
	typeMeta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	objects := []runtime.Object{
		account("-controller"), account("-node"),
		&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: c.clusterMeta(), Rules: c.clusterRules()},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: c.clusterMeta(), Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.clusterMeta().Name},
		},
	}
	objects = append(objects, c.constraintBinding("-controller", "anyuid"), c.constraintBinding("-node", "privileged"))
	namespaces := map[string][]rbacv1.PolicyRule{c.Namespace: {rule("coordination.k8s.io", "leases", "get", "create", "update")}}
	if c.uses(Secrets) && c.SecretsNamespace != "" {
		namespaces[c.SecretsNamespace] = append(namespaces[c.SecretsNamespace], rule("", "secrets", "get"))
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		meta := c.meta("-controller")
		meta.Namespace = namespace
		objects = append(objects,
			&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: meta, Rules: namespaces[namespace]},
			&rbacv1.RoleBinding{
				TypeMeta: typeMeta("RoleBinding"), ObjectMeta: meta, Subjects: subject,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			})
	}
	return objects
}

// constraintBinding allows a service account's pods to use a security context constraint. This is
// necessary because the driver mounts volumes on each node, and because controller images usually
// run as root. The binding has no effect on clusters without security context constraints.
func (c Config) constraintBinding(suffix, constraint string) runtime.Object {
	meta := c.meta(suffix)
	meta.Name += "-scc"
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: c.name() + suffix, Namespace: c.Namespace}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:openshift:scc:" + constraint},
	}
}

// clusterRules returns the rules for the features in use.
func (c Config) clusterRules() []rbacv1.PolicyRule {
	readVerbs := []string{"get", "list", "watch"}
	changeVerbs := []string{"get", "list", "watch", "patch"}
	rules := []rbacv1.PolicyRule{
		rule("", "events", "create", "patch"),
		rule("", "nodes", readVerbs...), rule("storage.k8s.io", "csinodes", readVerbs...),
		rule("", "persistentvolumes", changeVerbs...),
	}
	if c.uses(Attach) {
		rules = append(rules, rule("storage.k8s.io", "volumeattachments", changeVerbs...), rule("storage.k8s.io", "volumeattachments/status", "patch"))
	}
	if c.uses(Provision) || c.uses(Resize) {
		rules = append(rules,
			rule("", "persistentvolumeclaims", changeVerbs...), rule("storage.k8s.io", "storageclasses", readVerbs...),
			rule("storage.k8s.io", "volumeattributesclasses", readVerbs...))
	}
	if c.uses(Provision) {
		rules = append(rules,
			rule("", "persistentvolumes", "create", "delete"),
			rule("storage.k8s.io", "csidrivers", readVerbs...),
			rule("storage.k8s.io", "csistoragecapacities", slices.Concat(readVerbs, []string{"create", "update", "delete"})...))
	}
	if c.uses(Resize) {
		rules = append(rules, rule("", "persistentvolumeclaims/status", "patch"), rule("", "persistentvolumes/status", "patch"))
	}
	if c.uses(Snapshot) {
		const group = "snapshot.storage.k8s.io"
		rules = append(rules,
			rule(group, "volumesnapshots", slices.Concat(changeVerbs, []string{"update"})...), rule(group, "volumesnapshots/status", "patch", "update"),
			rule(group, "volumesnapshotclasses", readVerbs...),
			rule(group, "volumesnapshotcontents", slices.Concat(changeVerbs, []string{"create", "update", "delete"})...), rule(group, "volumesnapshotcontents/status", "patch", "update"))
	}
	if c.uses(Secrets) && c.SecretsNamespace == "" {
		rules = append(rules, rule("", "secrets", "get"))
	}
	return rules
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}
