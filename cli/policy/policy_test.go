package policy

import (
	"context"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
)

func TestRolesAreAddedAndRemoved(t *testing.T) {
	client := fake.NewClientset()
	with := func(users ...string) *binder {
		return &binder{client: client.RbacV1(), namespace: "joe-project", role: "admin", users: users}
	}
	run := func(b *binder, change func(context.Context) ([]change, error)) error {
		changes, err := change(t.Context())
		if err != nil {
			return err
		}
		return b.apply(t.Context(), changes)
	}
	add := func(b *binder) error { return run(b, b.add) }
	remove := func(b *binder) error { return run(b, b.remove) }
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
		{func() error { return add(with("joe")) }, map[string][]string{"admin": {"joe"}}},
		{func() error { return add(with("joe")) }, map[string][]string{"admin": {"joe"}}},
		{func() error { return add(with("alice")) }, map[string][]string{"admin": {"joe"}, "admin-0": {"alice"}}},
		{func() error {
			binder := with("system:serviceaccount:joe-project:robot")
			binder.binding = "admin-0"
			return add(binder)
		}, map[string][]string{"admin": {"joe"}, "admin-0": {"alice", "robot"}}},
		{func() error { return remove(with("joe")) }, map[string][]string{"admin-0": {"alice", "robot"}}},
		{func() error { return remove(with("alice")) }, map[string][]string{"admin-0": {"robot"}}},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		check(step.want)
	}
	if err := remove(with("nobody")); err == nil || err.Error() != "unable to find target [nobody]" {
		t.Errorf("remove a user without the role: %v", err)
	}
	if err := add(with("joe")); err != nil {
		t.Fatal(err)
	}
	changes, err := with("joe").remove(t.Context())
	if err != nil || len(changes) != 2 {
		t.Errorf("remove lists the bindings %+v, %v, want all bindings of the role", changes, err)
	}
	if err := remove(with("joe")); err != nil {
		t.Fatal(err)
	}
	check(map[string][]string{"admin-0": {"robot"}})
	robots, err := client.RbacV1().RoleBindings("joe-project").Get(t.Context(), "admin-0", metav1.GetOptions{})
	if err != nil || robots.Subjects[0].Kind != rbacv1.ServiceAccountKind {
		t.Errorf("the service account is bound as %+v, %v", robots, err)
	}
}

func TestUnusableTargetsAreRejected(t *testing.T) {
	for want, accounts := range map[string]string{
		"should only be used with short-form serviceaccount names": "system:serviceaccount:test:default",
		`":invalid" is not a valid serviceaccount name`:            ":invalid",
	} {
		if _, err := accountNames("shop", []string{accounts}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("account %q: %v, want %q", accounts, err, want)
		}
	}
	client := fake.NewClientset(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "custom", Namespace: "shop"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	b := &binder{client: client.RbacV1(), namespace: "shop", role: "other", binding: "custom", users: []string{"alice"}}
	if _, err := b.add(t.Context()); err == nil || err.Error() != "rolebinding custom found for role view, not other" {
		t.Errorf("add to a binding of another role: %v", err)
	}
	if _, err := b.remove(t.Context()); err == nil || err.Error() != "rolebinding custom contains role view, instead of role other" {
		t.Errorf("remove from a binding of another role: %v", err)
	}
}

func TestResourceIsFoundByAnyName(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "build.openshift.io", Version: "v1", Kind: "Build"}, meta.RESTScopeNamespace)
	for text, want := range map[string]string{
		"horizontalpodautoscaler.v1.autoscaling": "horizontalpodautoscalers.autoscaling",
		"build":                                  "builds.build.openshift.io",
		"builds/docker":                          "builds/docker.build.openshift.io",
		"PodASDF":                                "PodASDF",
		"systemusers":                            "systemusers",
	} {
		if got := resourceOf(mapper, text); got.String() != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
