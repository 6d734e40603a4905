package bootstrap

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestReconcileAddsMissingRulesAndKeepsOthers(t *testing.T) {
	rule := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"things"}}
	guest := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "guest"}
	client := fake.NewClientset(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "basic-user"}, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sudoer", Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"}}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-status", Annotations: map[string]string{"openshift.io/reconcile-protect": "true"}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "basic-users"}, Subjects: []rbacv1.Subject{guest},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "basic-user"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "self-provisioners", Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "self-provisioner"}},
	)
	if err := reconcilePolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	role := func(name string) *rbacv1.ClusterRole {
		role, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return role
	}
	binding := func(name string) *rbacv1.ClusterRoleBinding {
		binding, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return binding
	}
	if basic := role("basic-user"); len(basic.Rules) < 5 || !slices.ContainsFunc(basic.Rules, func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "things" }) {
		t.Errorf("basic-user has rules %v, want the defaults and the administrator's own", basic.Rules)
	}
	for _, name := range []string{"sudoer", "cluster-status"} {
		if rules := role(name).Rules; len(rules) > 0 {
			t.Errorf("protected role %s got rules %v", name, rules)
		}
	}
	if got := binding("basic-users").Subjects; len(got) != 2 || !slices.Contains(got, guest) {
		t.Errorf("basic-users has subjects %v, want the default and the administrator's own", got)
	}
	if got := binding("self-provisioners").Subjects; len(got) != 0 {
		t.Errorf("protected self-provisioners got subjects %v", got)
	}
	client.ClearActions()
	if err := reconcilePolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if actions := client.Actions(); len(actions) != 2 {
		t.Errorf("a second start sent %d requests, want only the two lists: %v", len(actions), actions)
	}
}
