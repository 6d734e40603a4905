package kube

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

func TestDefaultObjectsAreCreatedAndRestored(t *testing.T) {
	client := fake.NewClientset()
	create := func() {
		t.Helper()
		if err := (defaults{policy: true, priorityClasses: true}).create(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	create()
	classes, err := client.SchedulingV1().PriorityClasses().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(classes.Items) != 2 {
		t.Errorf("got priority classes %v, %v", classes, err)
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			if _, err := client.RbacV1().Roles(namespace).Get(t.Context(), role.Name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			if _, err := client.RbacV1().RoleBindings(namespace).Get(t.Context(), binding.Name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		if _, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), binding.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, role := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		stored, err := client.RbacV1().ClusterRoles().Get(t.Context(), role.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(stored.Rules) != len(role.Rules) {
			t.Errorf("cluster role %q has %d rules, want %d", role.Name, len(stored.Rules), len(role.Rules))
		}
	}

	const name = "system:node-problem-detector"
	role, err := client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rules := len(role.Rules)
	role.Rules = role.Rules[1:]
	if _, err := client.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	create()
	client.ClearActions()
	create()
	for _, action := range client.Actions() {
		if cluster := action.GetNamespace() == "" && action.GetResource().Group == "rbac.authorization.k8s.io"; cluster && action.GetVerb() != "list" {
			t.Errorf("an unchanged policy needs the request %v", action)
		}
	}
	if role, err = client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{}); err != nil || len(role.Rules) != rules {
		t.Errorf("the role has the rules %v, %v; want %d", role.Rules, err, rules)
	}
}

// The API server stops while it is starting, for example because a second master joins.
func TestStoppingServerIsNotEndedByDefaultsHook(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	client := fake.NewClientset()
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		stop()
		return true, nil, errors.New("the server stops")
	})
	if err := (defaults{policy: true, priorityClasses: true}).ensure(ctx, client); err != nil {
		t.Error(err)
	}
}

func TestDefaultsHookReplacesUpstreams(t *testing.T) {
	config := genericserver.NewConfig(legacyscheme.Codecs)
	if err := replaceDefaultsHooks(config); err != nil {
		t.Fatal(err)
	}
	if !config.DisabledPostStartHooks.HasAll(rbacrest.PostStartHookName, schedulingrest.PostStartHookName) {
		t.Errorf("the disabled hooks are %v", config.DisabledPostStartHooks.List())
	}
	if _, exists := config.PostStartHooks[defaultsHook]; !exists {
		t.Errorf("the hooks are %v", config.PostStartHooks)
	}
}
