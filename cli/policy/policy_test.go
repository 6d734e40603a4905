package policy

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestRolesAreAddedAndRemovedAsInOpenShift(t *testing.T) {
	client := fake.NewClientset()
	with := func(users ...string) *binder {
		return &binder{client: client.RbacV1(), namespace: "joe-project", role: "admin", users: users}
	}
	check := func(want map[string][]string) {
		t.Helper()
		list, err := client.RbacV1().RoleBindings("joe-project").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != len(want) {
			t.Errorf("there are %d bindings, want %v", len(list.Items), want)
		}
		for _, binding := range list.Items {
			var names []string
			for _, s := range binding.Subjects {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, want[binding.Name]) || binding.RoleRef.Name != "admin" {
				t.Errorf("%s binds %s to %v, want %v", binding.Name, binding.RoleRef.Name, names, want[binding.Name])
			}
		}
	}
	steps := []struct {
		do   func() error
		want map[string][]string
	}{
		{func() error { return with("joe").add(t.Context()) }, map[string][]string{"admin": {"joe"}}},
		{func() error { return with("joe").add(t.Context()) }, map[string][]string{"admin": {"joe"}}},
		{func() error { return with("alice").add(t.Context()) }, map[string][]string{"admin": {"joe"}, "admin-0": {"alice"}}},
		{func() error {
			named := with("system:serviceaccount:joe-project:robot")
			named.binding = "admin-0"
			return named.add(t.Context())
		}, map[string][]string{"admin": {"joe"}, "admin-0": {"alice", "robot"}}},
		{func() error { return with("joe").remove(t.Context()) }, map[string][]string{"admin-0": {"alice", "robot"}}},
		{func() error { return with("alice").remove(t.Context()) }, map[string][]string{"admin-0": {"robot"}}},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		check(step.want)
	}
	if err := with("nobody").remove(t.Context()); err == nil {
		t.Error("removing someone who has no role is no error")
	}
	robots, err := client.RbacV1().RoleBindings("joe-project").Get(t.Context(), "admin-0", metav1.GetOptions{})
	if err != nil || robots.Subjects[0].Kind != rbacv1.ServiceAccountKind {
		t.Errorf("the service account is bound as %+v, %v", robots, err)
	}
}
