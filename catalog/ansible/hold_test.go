package ansible

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// heldBroker returns a broker with an instance in the shop project. If terminating is true, the
// project is being deleted.
func heldBroker(t *testing.T, terminating, ordered bool) (*broker, *record) {
	t.Helper()
	project := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	b := &broker{kube: fake.NewClientset(project), options: Options{SandboxRole: "edit"}}
	b.ordered = func(context.Context, string, string) (bool, error) { return ordered, nil }
	rec := &record{ID: "one", Namespace: "shop", Bundle: source{Namespace: "openshift"}, Operation: &operation{Name: "bundle-1", Action: deprovisionAction, State: succeeded}}
	rec.Operation.Bundle = rec.Bundle
	if err := b.store(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if err := b.hold(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if !terminating {
		return b, rec
	}
	now := metav1.Now()
	project.DeletionTimestamp, project.Finalizers = &now, []string{"kubernetes"}
	if _, err := b.kube.CoreV1().Namespaces().Update(t.Context(), project, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := b.held(t)
	binding.DeletionTimestamp = &now
	if _, err := b.kube.RbacV1().RoleBindings("shop").Update(t.Context(), binding, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return b, rec
}

// held returns the role binding of the instance, or nil.
func (b *broker) held(t *testing.T) *rbacv1.RoleBinding {
	t.Helper()
	binding, err := b.kube.RbacV1().RoleBindings("shop").Get(t.Context(), heldName("one"), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return binding
}

func TestOperationInDeletedProjectGetsRightsOfInstance(t *testing.T) {
	b, rec := heldBroker(t, true, true)
	if err := b.grant(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if binding := b.held(t); len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != "bundle-1" || binding.RoleRef.Name != "edit" {
		t.Errorf("the role binding is %+v", binding)
	}
	if _, err := b.kube.RbacV1().RoleBindings("shop").Get(t.Context(), "bundle-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a role binding was created in a project that is being deleted: %v", err)
	}
	if err := b.clean(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if binding := b.held(t); len(binding.Subjects) != 0 || len(binding.Finalizers) != 1 {
		t.Errorf("after the operation, the role binding is %+v", binding)
	}
	if err := b.forget(t.Context(), rec); err != nil || b.held(t) != nil {
		t.Errorf("after the deprovisioning, the role binding exists: %v", err)
	}
}

func TestRoleBindingIsReleasedOnceNobodyDeprovisions(t *testing.T) {
	for name, tt := range map[string]struct {
		terminating, ordered, recorded bool
		held                           bool
	}{
		"instance in use":        {false, true, true, true},
		"project is deleted":     {true, true, true, true},
		"instance was abandoned": {true, false, true, false},
		"record was lost":        {true, true, false, false},
	} {
		b, rec := heldBroker(t, tt.terminating, tt.ordered)
		if !tt.recorded {
			if err := b.kube.CoreV1().Secrets(namespace).Delete(t.Context(), secretName(rec.ID), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.sweepHeld(t.Context()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if held := b.held(t) != nil; held != tt.held {
			t.Errorf("%s: the role binding exists: %v, want %v", name, held, tt.held)
		}
	}
}
