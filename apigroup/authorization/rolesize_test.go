package authorization

import (
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestRolesHaveMaximumSize(t *testing.T) {
	list := func(length int) (values []string) {
		for i := range length {
			values = append(values, strconv.Itoa(i))
		}
		return values
	}
	rule := func(verbs, groups, resources, names int) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: list(verbs), APIGroups: list(groups), Resources: list(resources), ResourceNames: list(names)}
	}
	for name, tt := range map[string]struct {
		rules []rbacv1.PolicyRule
		group string
		ok    bool
	}{
		"no rules":       {nil, "", true},
		"the maximum":    {[]rbacv1.PolicyRule{rule(10, 1, 400, 0), rule(10, 10, 10, 0)}, "", true},
		"one more":       {[]rbacv1.PolicyRule{rule(10, 1, 400, 0), rule(10, 10, 10, 0), rule(1, 1, 1, 0)}, "", false},
		"names":          {[]rbacv1.PolicyRule{rule(10, 1, 10, 51)}, "", false},
		"paths":          {[]rbacv1.PolicyRule{{Verbs: list(100), NonResourceURLs: list(51)}}, "", false},
		"many rules":     {make([]rbacv1.PolicyRule, maxGrants+1), "", false},
		"an overflow":    {[]rbacv1.PolicyRule{rule(5000, 5000, 5000, 5000)}, "", false},
		"system:masters": {[]rbacv1.PolicyRule{rule(5000, 5000, 5000, 5000)}, user.SystemPrivilegedGroup, true},
	} {
		for _, role := range []runtime.Object{&rbacv1.Role{Rules: tt.rules}, &rbacv1.ClusterRole{Rules: tt.rules}} {
			attributes := admission.NewAttributesRecord(role, nil, rbacv1.SchemeGroupVersion.WithKind("Role"), "shop", "r", rbacv1.SchemeGroupVersion.WithResource("roles"), "",
				admission.Create, nil, false, &user.DefaultInfo{Name: "alice", Groups: []string{tt.group}})
			if err := newRoleSize().Admit(t.Context(), attributes, nil); (err == nil) != tt.ok {
				t.Errorf("%s, %T: %v", name, role, err)
			}
		}
	}
}
