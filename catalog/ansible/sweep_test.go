package ansible

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// abandoned returns a broker with the sandboxes and pods of operations that are no longer polled.
// The instances have the same names as the operations.
func abandoned(t *testing.T, options Options, phases map[string]corev1.PodPhase, states map[string]string) *broker {
	t.Helper()
	b := &broker{kube: fake.NewClientset(), options: options}
	b.options.SandboxRole = "edit"
	create := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	namespaces := b.kube.CoreV1().Namespaces()
	_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	create(err)
	for name, phase := range phases {
		_, err := namespaces.Create(t.Context(), sandboxOf(&record{ID: name, Operation: &operation{Name: name}}), metav1.CreateOptions{})
		create(err)
		_, err = b.kube.CoreV1().Pods(name).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}}, metav1.CreateOptions{})
		create(err)
		_, err = b.kube.RbacV1().RoleBindings("shop").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		create(err)
		if state, ok := states[name]; ok {
			create(b.store(t.Context(), &record{ID: name, Namespace: "shop", Operation: &operation{Name: name, Action: provisionAction, State: state}}))
		}
	}
	return b
}

// left returns the names of the remaining sandboxes, and of the remaining role bindings in the shop
// project.
func (b *broker) left(t *testing.T) (sandboxes, rights []string) {
	t.Helper()
	namespaces, err := b.kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: sandboxLabel})
	if err != nil {
		t.Fatal(err)
	}
	for i := range namespaces.Items {
		sandboxes = append(sandboxes, namespaces.Items[i].Name)
	}
	bindings, err := b.kube.RbacV1().RoleBindings("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range bindings.Items {
		rights = append(rights, bindings.Items[i].Name)
	}
	slices.Sort(sandboxes)
	slices.Sort(rights)
	return sandboxes, rights
}

func TestOperationsEndWithoutPolls(t *testing.T) {
	phases := map[string]corev1.PodPhase{
		"ended": corev1.PodSucceeded, "broken": corev1.PodFailed, "running": corev1.PodRunning, "former": corev1.PodSucceeded, "unknown": corev1.PodSucceeded,
	}
	states := map[string]string{"ended": inProgress, "broken": inProgress, "running": inProgress, "former": succeeded}
	for name, tt := range map[string]struct {
		options   Options
		sandboxes string
	}{
		"default":     {Options{}, "running"},
		"keep failed": {Options{KeepNamespaceOnError: true}, "broken running unknown"},
		"keep all":    {Options{KeepNamespace: true}, "broken ended former running unknown"},
	} {
		b := abandoned(t, tt.options, phases, states)
		for range 2 { // the second sweep must not change anything
			if err := b.sweep(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sandboxes, rights := b.left(t)
			if got := strings.Join(sandboxes, " "); got != tt.sandboxes {
				t.Errorf("%s: the sandboxes %s exist, want %s", name, got, tt.sandboxes)
			}
			// The broker can't clean up the role bindings of the instance without a record, because
			// the instance's project is unknown.
			if got := strings.Join(rights, " "); got != "running unknown" {
				t.Errorf("%s: the rights of %s exist", name, got)
			}
		}
		for id, want := range map[string]string{"ended": succeeded, "broken": failed, "running": inProgress, "former": succeeded} {
			if rec, err := b.load(t.Context(), id); err != nil || rec.Operation.State != want || rec.Provisioned != (id == "ended") {
				t.Errorf("%s: instance %s is %+v, %v, want state %s", name, id, rec, err, want)
			}
		}
	}
}
