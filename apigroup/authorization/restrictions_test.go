package authorization

import (
	"strings"
	"testing"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	userv1 "github.com/openshift/api/user/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestValidateRestriction(t *testing.T) {
	invalid := []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}}
	users := &authorizationv1.UserRestriction{Users: []string{"alice"}}
	for name, tt := range map[string]struct {
		spec authorizationv1.RoleBindingRestrictionSpec
		want string // the field that is rejected, or empty
	}{
		"users":            {authorizationv1.RoleBindingRestrictionSpec{UserRestriction: users}, ""},
		"no users":         {authorizationv1.RoleBindingRestrictionSpec{UserRestriction: &authorizationv1.UserRestriction{}}, "spec.userrestriction"},
		"no groups":        {authorizationv1.RoleBindingRestrictionSpec{GroupRestriction: &authorizationv1.GroupRestriction{}}, "spec.grouprestriction"},
		"no accounts":      {authorizationv1.RoleBindingRestrictionSpec{ServiceAccountRestriction: &authorizationv1.ServiceAccountRestriction{}}, "spec.serviceaccountrestriction"},
		"nothing":          {authorizationv1.RoleBindingRestrictionSpec{}, "spec"},
		"invalid selector": {authorizationv1.RoleBindingRestrictionSpec{UserRestriction: &authorizationv1.UserRestriction{Selectors: invalid}}, "spec.userrestriction.labels[0].matchExpressions[0].operator"},
		"two restrictions": {authorizationv1.RoleBindingRestrictionSpec{
			UserRestriction: users, GroupRestriction: &authorizationv1.GroupRestriction{Groups: []string{"team"}},
		}, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := validateRestriction(&authorizationv1.RoleBindingRestriction{Spec: tt.spec})
			if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || errs[0].Field != tt.want) {
				t.Errorf("errors are %v, want one at %q", errs, tt.want)
			}
		})
	}
}

// restrictedProject returns a plugin for a cluster with a `shop` project. The project allows the
// user alice, users with the label team=shop, members of the staff group, and the staff group
// itself. It also allows its own `robot` service account and the service accounts of the `tools`
// project.
func restrictedProject() *restrict {
	restriction := func(name string, spec authorizationv1.RoleBindingRestrictionSpec) *authorizationv1.RoleBindingRestriction {
		return &authorizationv1.RoleBindingRestriction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
	}
	labeled := &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "bob", Labels: map[string]string{"team": "shop"}}}
	plain := &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "eve"}}
	staff := &userv1.Group{ObjectMeta: metav1.ObjectMeta{Name: "staff"}, Users: []string{"carol"}}
	restrictions := authorizationv1.Resource("rolebindingrestrictions")
	users, groups := userv1.Resource("users"), userv1.Resource("groups")
	return &restrict{
		Handler: admission.NewHandler(admission.Create, admission.Update),
		stores: map[schema.GroupResource]*registry.Store{
			users:  storetest.New(users, &userv1.UserList{}, labeled, plain),
			groups: storetest.New(groups, &userv1.GroupList{}, staff),
			restrictions: storetest.New(restrictions, &authorizationv1.RoleBindingRestrictionList{},
				restriction("users", authorizationv1.RoleBindingRestrictionSpec{UserRestriction: &authorizationv1.UserRestriction{
					Users: []string{"alice"}, Groups: []string{"staff"},
					Selectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"team": "shop"}}},
				}}),
				restriction("groups", authorizationv1.RoleBindingRestrictionSpec{GroupRestriction: &authorizationv1.GroupRestriction{Groups: []string{"staff"}}}),
				restriction("accounts", authorizationv1.RoleBindingRestrictionSpec{ServiceAccountRestriction: &authorizationv1.ServiceAccountRestriction{
					ServiceAccounts: []authorizationv1.ServiceAccountReference{{Name: "robot"}}, Namespaces: []string{"tools"},
				}}),
			),
		},
	}
}

func binding(subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{Subjects: subjects}
}

func TestRestrictAllowsOnlyListedSubjects(t *testing.T) {
	subject := func(kind, name string) rbacv1.Subject { return rbacv1.Subject{Kind: kind, Name: name} }
	robotOf := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "robot", Namespace: namespace}
	}
	eve := subject(rbacv1.UserKind, "eve")
	for name, tt := range map[string]struct {
		namespace string
		old       runtime.Object
		binding   *rbacv1.RoleBinding
		wantErr   string // a part of the error, or empty
	}{
		"listed user":                      {"shop", nil, binding(subject(rbacv1.UserKind, "alice")), ""},
		"user with a label":                {"shop", nil, binding(subject(rbacv1.UserKind, "bob")), ""},
		"member of a group":                {"shop", nil, binding(subject(rbacv1.UserKind, "carol")), ""},
		"other user":                       {"shop", nil, binding(eve), `User "eve"`},
		"user without a User object":       {"shop", nil, binding(subject(rbacv1.UserKind, "dave")), `User "dave"`},
		"listed group":                     {"shop", nil, binding(subject(rbacv1.GroupKind, "staff")), ""},
		"other group":                      {"shop", nil, binding(subject(rbacv1.GroupKind, "team")), `Group "team"`},
		"listed account":                   {"shop", nil, binding(robotOf("shop")), ""},
		"listed account without namespace": {"shop", nil, binding(robotOf("")), ""},
		"account of an allowed project":    {"shop", nil, binding(robotOf("tools")), ""},
		"account of another project":       {"shop", nil, binding(robotOf("default")), `ServiceAccount "robot"`},
		"one of two subjects":              {"shop", nil, binding(subject(rbacv1.UserKind, "alice"), eve), `User "eve"`},
		"subject of the old binding":       {"shop", binding(eve), binding(eve, robotOf("shop")), ""},
		"project without restrictions":     {"free", nil, binding(eve), ""},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			if tt.old != nil {
				operation = admission.Update
			}
			a := admission.NewAttributesRecord(tt.binding, tt.old, rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), tt.namespace, "b",
				rbacv1.SchemeGroupVersion.WithResource("rolebindings"), "", operation, nil, false, &user.DefaultInfo{Name: "mallory"})
			err := restrictedProject().Validate(t.Context(), a, nil)
			if (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error is %v, want %q", err, tt.wantErr)
			}
		})
	}
}
