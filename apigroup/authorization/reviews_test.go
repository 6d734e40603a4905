package authorization

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "github.com/openshift/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/oauth/scope"
)

func TestLocalReviewsStayInTheirNamespace(t *testing.T) {
	for name, ok := range map[string]bool{"": true, "shop": true, "blog": false} {
		err := sameNamespace("shop", authorizationv1.Action{Namespace: name})
		if (err == nil) != ok || err != nil && !apierrors.IsBadRequest(err) {
			t.Errorf("%q: got error %v, want allowed %v", name, err, ok)
		}
	}
}

func TestScopesReduceRules(t *testing.T) {
	onlyReads := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if (a.GetVerb() == "get" || a.GetVerb() == "list") && a.GetResource() == "pods" && a.GetNamespace() == "shop" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "delete"}, APIGroups: []string{""}, Resources: []string{"pods", "secrets"}},
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"web"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}},
	}
	want := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}},
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"web"}},
	}
	got, err := within(t.Context(), onlyReads, &user.DefaultInfo{Name: "alice"}, "shop", rules)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, rules (-want +got):\n%s", err, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := within(ctx, onlyReads, &user.DefaultInfo{Name: "alice"}, "shop", rules); err == nil {
		t.Error("a review continues after the end of its request")
	}
}

func TestReviewHasScopesOfOneToken(t *testing.T) {
	same := slices.Repeat([]string{"role:view:shop"}, 10_000)
	u, err := subject(t.Context(), "alice", nil, same)
	if err != nil || len(u.GetExtra()[scope.ExtraKey]) != 1 {
		t.Errorf("the same scope many times: %v, error %v", u, err)
	}
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf("role:view-%d:shop", i))
	}
	if _, err := subject(t.Context(), "alice", nil, all); !apierrors.IsBadRequest(err) {
		t.Errorf("1,000 scopes: error %v", err)
	}
}

func TestClusterRolesConvertInBothDirections(t *testing.T) {
	role := &rbacv1.ClusterRole{
		ObjectMeta:      metav1.ObjectMeta{Name: "reader", Labels: map[string]string{"a": "b"}},
		Rules:           []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"web"}}, {Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"c": "d"}}}},
	}
	got, errs := toClusterRole(fromClusterRole(role))
	if diff := cmp.Diff(role, got); diff != "" || len(errs) > 0 {
		t.Errorf("errors %v, role (-want +got):\n%s", errs, diff)
	}
}

func TestClusterRoleBindingsConvertInBothDirections(t *testing.T) {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: "User", Name: "alice"}, {Kind: "ServiceAccount", Namespace: "ci", Name: "robot"},
			{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"},
		},
	}
	converted := fromClusterRoleBinding(binding)
	if diff := cmp.Diff(authorizationv1.OptionalNames{"alice", "system:serviceaccount:ci:robot"}, converted.UserNames); diff != "" {
		t.Errorf("user names (-want +got):\n%s", diff)
	}
	if kind := converted.Subjects[2].Kind; kind != systemGroupKind {
		t.Errorf("got kind %q of a virtual group, want %q", kind, systemGroupKind)
	}
	got, errs := toClusterRoleBinding(converted)
	if diff := cmp.Diff(binding, got); diff != "" || len(errs) > 0 {
		t.Errorf("errors %v, binding (-want +got):\n%s", errs, diff)
	}
}

func TestColumnsOfBindings(t *testing.T) {
	columns := bindingColumns(func(b *authorizationv1.RoleBinding) bound { return bound{b.RoleRef, b.Subjects} })
	binding := &authorizationv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, RoleRef: corev1.ObjectReference{Name: "edit"},
		Subjects: []corev1.ObjectReference{
			{Kind: "User", Name: "alice"}, {Kind: systemUserKind, Name: "system:admin"}, {Kind: "Group", Name: "dev"},
			{Kind: "ServiceAccount", Namespace: "shop", Name: "own"}, {Kind: "ServiceAccount", Namespace: "ci", Name: "robot"},
		},
	}
	want := map[string]string{"Role": "/edit", "Users": "alice, system:admin", "Groups": "dev", "Service Accounts": "own, ci/robot"}
	for _, column := range columns {
		if text, ok := want[column.Name]; ok && column.Value(binding) != text {
			t.Errorf("%s: got %v, want %q", column.Name, column.Value(binding), text)
		}
	}
}
