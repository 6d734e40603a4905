package policy

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/bootstrap/policy"
)

// damage returns the default policy without some randomly chosen objects, and without some of the
// labels, rules and subjects of the remaining objects.
func damage(t *testing.T, random *rand.Rand) (remaining []runtime.Object) {
	t.Helper()
	roles, err := policy.AllRoles()
	if err != nil {
		t.Fatal(err)
	}
	for i := range roles {
		role := &roles[i]
		switch random.IntN(6) {
		case 0:
			continue
		case 1:
			role.Labels, role.Annotations = nil, nil
		case 2:
			role.AggregationRule = nil
		case 3:
			role.Rules = slices.DeleteFunc(role.Rules, func(rbacv1.PolicyRule) bool { return random.IntN(2) == 0 })
		}
		remaining = append(remaining, role)
	}
	bindings, err := policy.AllBindings()
	if err != nil {
		t.Fatal(err)
	}
	for i := range bindings {
		binding := &bindings[i]
		switch random.IntN(5) {
		case 0:
			continue
		case 1:
			binding.Labels, binding.Annotations = nil, nil
		case 2:
			binding.Subjects = nil
		case 3:
			binding.RoleRef.Name = "another"
		}
		remaining = append(remaining, binding)
	}
	return remaining
}

func TestReconciliationRestoresRemovedObjects(t *testing.T) {
	for seed := range uint64(3) {
		client := fake.NewClientset(damage(t, rand.New(rand.NewPCG(seed, 0)))...)
		for _, additive := range []bool{true, false} {
			r := &reconcile{confirm: true, additive: additive}
			if _, err := r.roles(t.Context(), client.RbacV1(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := r.bindings(t.Context(), client.RbacV1(), nil); err != nil {
				t.Fatal(err)
			}
		}
		checkRoles(t, client)
		checkBindings(t, client)
	}
}

func checkRoles(t *testing.T, client *fake.Clientset) {
	t.Helper()
	want, err := policy.AllRoles()
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(got.Items) != len(want) {
		t.Fatalf("%d cluster roles, want %d: %v", len(got.Items), len(want), err)
	}
	for _, role := range want {
		i := slices.IndexFunc(got.Items, func(r rbacv1.ClusterRole) bool { return r.Name == role.Name })
		if i < 0 {
			t.Fatalf("cluster role %s is missing", role.Name)
		}
		existing := got.Items[i]
		if !maps.Equal(existing.Labels, role.Labels) || !maps.Equal(existing.Annotations, role.Annotations) ||
			!cmp.Equal(existing.AggregationRule, role.AggregationRule) {
			t.Errorf("cluster role %s has labels %v, annotations %v and selectors %v", role.Name, existing.Labels, existing.Annotations, existing.AggregationRule)
		}
		if covered, missing := validation.Covers(existing.Rules, role.Rules); !covered {
			t.Errorf("cluster role %s lacks %v", role.Name, missing)
		}
		if covered, extra := validation.Covers(role.Rules, existing.Rules); !covered {
			t.Errorf("cluster role %s has the additional rules %v", role.Name, extra)
		}
	}
}

func checkBindings(t *testing.T, client *fake.Clientset) {
	t.Helper()
	want, err := policy.AllBindings()
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(got.Items) != len(want) {
		t.Fatalf("%d cluster role bindings, want %d: %v", len(got.Items), len(want), err)
	}
	for _, binding := range want {
		i := slices.IndexFunc(got.Items, func(b rbacv1.ClusterRoleBinding) bool { return b.Name == binding.Name })
		if i < 0 {
			t.Fatalf("cluster role binding %s is missing", binding.Name)
		}
		existing := got.Items[i]
		if diff := cmp.Diff(binding.RoleRef, existing.RoleRef); diff != "" || !maps.Equal(existing.Labels, binding.Labels) || !cmp.Equal(existing.Subjects, binding.Subjects) {
			t.Errorf("cluster role binding %s is %v", binding.Name, existing)
		}
	}
}

// A binding that refers to a different role must be replaced, because a binding's role is
// immutable.
func TestReplacedBindingKeepsAdditions(t *testing.T) {
	custom := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "custom"}
	for _, tt := range []struct {
		additive bool
		want     bool
	}{{true, true}, {false, false}} {
		binding := rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "basic-users", Labels: map[string]string{"custom": "a"}, Annotations: map[string]string{"custom": "b"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-status"},
			Subjects:   []rbacv1.Subject{custom},
		}
		client := fake.NewSimpleClientset(&binding)
		r := &reconcile{confirm: true, additive: tt.additive}
		if _, err := r.bindings(t.Context(), client.RbacV1(), []string{"basic-user"}); err != nil {
			t.Fatal(err)
		}
		got, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), "basic-users", metav1.GetOptions{})
		if err != nil || got.RoleRef.Name != "basic-user" || got.Labels["custom"] != "a" || got.Annotations["custom"] != "b" {
			t.Errorf("additive %t: binding %v (%v), want its role corrected and its labels and annotations kept", tt.additive, got, err)
		}
		if slices.Contains(got.Subjects, custom) != tt.want {
			t.Errorf("additive %t: subjects are %v", tt.additive, got.Subjects)
		}
	}
}

func TestProtectedDefaultsAreNotReconciled(t *testing.T) {
	protected := metav1.ObjectMeta{Name: "edit", Annotations: map[string]string{"openshift.io/reconcile-protect": "true"}}
	binding := rbacv1.ClusterRoleBinding{ObjectMeta: protected, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "basic-user"}}
	binding.Name = "basic-users"
	client := fake.NewClientset(&rbacv1.ClusterRole{ObjectMeta: protected}, &binding)
	streams, _, _, messages := genericiooptions.NewTestIOStreams()
	r := &reconcile{IOStreams: streams, confirm: true}
	if changes, err := r.roles(t.Context(), client.RbacV1(), []string{"clusterrole/edit"}); err != nil || len(changes) > 0 {
		t.Errorf("a protected role: %v, %v", changes, err)
	}
	if changes, err := r.bindings(t.Context(), client.RbacV1(), []string{"basic-user"}); err != nil || len(changes) > 0 {
		t.Errorf("a protected binding: %v, %v", changes, err)
	}
	if got, want := messages.String(), "skipped: clusterrole/edit\nskipped: clusterrolebinding/basic-users\n"; got != want {
		t.Errorf("messages %q, want %q", got, want)
	}
}

func TestMergedConstraintsAreDefaults(t *testing.T) {
	for _, want := range scc.BuiltIn("openshift-infra") {
		damaged := want.DeepCopy()
		damaged.Users, damaged.Groups, damaged.Priority, damaged.Annotations = nil, nil, nil, nil
		damaged.Volumes, damaged.AllowPrivilegedContainer = nil, !want.AllowPrivilegedContainer
		for _, additive := range []bool{true, false} {
			got, _ := json.Marshal(merge(want, damaged, additive))
			if diff := cmp.Diff(asJSON(t, want), string(got)); diff != "" {
				t.Errorf("constraint %s, additive %v (-want +got):\n%s", want.Name, additive, diff)
			}
		}
	}
}

func asJSON(t *testing.T, object any) string {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
