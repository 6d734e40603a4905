package authorization

import (
	"context"
	"reflect"
	"slices"
	"testing"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/oauth/scope"
)

func TestRoleBindingConversionRoundTrips(t *testing.T) {
	rbac := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "shop"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: "User", Name: "joe"}, {APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:admin"},
			{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "team"}, {APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"},
			{Kind: "ServiceAccount", Namespace: "shop", Name: "builder"},
		},
	}
	binding := fromRoleBinding(rbac)
	var kinds []string
	for _, s := range binding.Subjects {
		kinds = append(kinds, s.Kind)
	}
	if want := []string{"User", "SystemUser", "Group", "SystemGroup", "ServiceAccount"}; !slices.Equal(kinds, want) {
		t.Errorf("kinds are %v, want %v", kinds, want)
	}
	if want := []string{"joe", "system:admin", "system:serviceaccount:shop:builder"}; !slices.Equal(binding.UserNames, want) {
		t.Errorf("users are %v", binding.UserNames)
	}
	byReference := binding.DeepCopy()
	byReference.UserNames, byReference.GroupNames = nil, nil
	for way, binding := range map[string]*authorizationv1.RoleBinding{"references": byReference} {
		back, errs := toRoleBinding(binding)
		if len(errs) > 0 || !reflect.DeepEqual(back, rbac) {
			t.Errorf("by %s: %+v, %v", way, back, errs)
		}
	}
	byName, errs := toRoleBinding(binding)
	if len(errs) > 0 || len(byName.Subjects) != len(rbac.Subjects) {
		t.Errorf("by names: %+v, %v", byName, errs)
	}
}

func TestConversionRejectsRulesThatRBACLacks(t *testing.T) {
	for want, b := range map[string]*authorizationv1.RoleBinding{
		"roleRef.namespace": {ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, RoleRef: corev1.ObjectReference{Namespace: "other", Name: "r"}},
		"roleRef.name":      {},
		"subjects[0].kind":  {RoleRef: corev1.ObjectReference{Name: "r"}, Subjects: []corev1.ObjectReference{{Kind: "Robot", Name: "r2"}}},
		"subjects[0].name":  {RoleRef: corev1.ObjectReference{Name: "r"}, Subjects: []corev1.ObjectReference{{Kind: "User"}}},
	} {
		if _, errs := toRoleBinding(b); len(errs) != 1 || errs[0].Field != want {
			t.Errorf("%s: %v", want, errs)
		}
	}
	role := &authorizationv1.Role{Rules: []authorizationv1.PolicyRule{{Verbs: []string{"get"}, Resources: []string{"pods"}, AttributeRestrictions: runtime.RawExtension{Raw: []byte(`{"kind":"x"}`)}}}}
	if _, errs := toRole(role); len(errs) != 1 {
		t.Errorf("attribute restrictions: %v", errs)
	}
}

func TestResourceAccessAndRulesReviews(t *testing.T) {
	rule := func(verb, resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}}}
	}
	client := fake.NewClientset(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: rule("get", "pods")},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "shop"}, Rules: rule("*", "*")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "readers"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "team"}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "gone"}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "shop"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "all"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "joe"}, {Kind: "ServiceAccount", Name: "builder"}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "other"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "elsewhere"}}},
	)
	factory := informers.NewSharedInformerFactory(client, 0)
	l := newLocator(factory)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	resp, err := l.review("shop", authorizationv1.Action{Verb: "get", Resource: "pods"})
	if err != nil {
		t.Fatal(err)
	}
	got := resp.(*authorizationv1.ResourceAccessReviewResponse)
	if !slices.Equal(got.UsersSlice, []string{"joe", "system:serviceaccount:shop:builder"}) || !slices.Equal(got.GroupsSlice, []string{"system:masters", "team"}) {
		t.Errorf("who can: %+v", got)
	}
	if got.EvaluationError == "" {
		t.Error("the binding without a role is not named")
	}
	rules, _, err := l.rulesFor("shop", &user.DefaultInfo{Name: "system:serviceaccount:shop:builder", Groups: []string{"team"}})
	if err != nil || len(rules) != 2 {
		t.Errorf("rules are %v, %v", rules, err)
	}
}

func TestReviewsOfOtherUsersNeedRole(t *testing.T) {
	admin := rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"authorization.openshift.io"}, Resources: []string{"subjectaccessreviews"}}
	scopes := &scope.Authorizer{ClusterRole: func(context.Context, string) ([]rbacv1.PolicyRule, error) { return []rbacv1.PolicyRule{admin}, nil }}
	decider := authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if decision, reason, err := scopes.Authorize(ctx, a); decision == authorizer.DecisionDeny {
			return decision, reason, err
		}
		return authorizer.DecisionAllow, "", nil
	})
	for _, tt := range []struct {
		scopes []string
		name   string
		groups []string
		ok     bool
	}{
		{[]string{"user:check-access"}, "", nil, true},
		{[]string{"user:check-access"}, "bob", nil, false},
		{[]string{"user:check-access"}, "", []string{"team"}, false},
		{[]string{"user:check-access", "user:info"}, "bob", nil, false},
		{[]string{"user:check-access", "user:full"}, "bob", nil, true},
		{[]string{"user:check-access", "role:admin:*"}, "bob", nil, true},
		{nil, "bob", nil, true},
	} {
		info := &user.DefaultInfo{Name: "alice"}
		if tt.scopes != nil {
			info.Extra = map[string][]string{scope.ExtraKey: tt.scopes}
		}
		err := mayReview(request.WithUser(t.Context(), info), decider, "subjectaccessreviews", "", tt.name, tt.groups)
		if (err == nil) != tt.ok || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%v about %q %v: %v", tt.scopes, tt.name, tt.groups, err)
		}
	}
}
