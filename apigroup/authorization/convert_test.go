package authorization

import (
	"slices"
	"testing"

	authorizationv1 "github.com/openshift/api/authorization/v1"
)

func TestRulesWithoutGroupsApplyToAllGroups(t *testing.T) {
	for name, tt := range map[string]struct {
		rule authorizationv1.PolicyRule
		want []string
	}{
		"everything":            {authorizationv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"*"}}, []string{"*"}},
		"every verb on pods":    {authorizationv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"pods"}}, []string{""}},
		"get on every resource": {authorizationv1.PolicyRule{Verbs: []string{"get"}, Resources: []string{"*"}}, []string{""}},
		"everything of one name": {authorizationv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"*"}, ResourceNames: []string{"a"}},
			[]string{""}},
		"everything in a group": {authorizationv1.PolicyRule{APIGroups: []string{"apps"}, Verbs: []string{"*"}, Resources: []string{"*"}}, []string{"apps"}},
		"every URL":             {authorizationv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLsSlice: []string{"*"}}, nil},
	} {
		rules, errs := toRules([]authorizationv1.PolicyRule{tt.rule})
		if len(errs) > 0 || !slices.Equal(rules[0].APIGroups, tt.want) {
			t.Errorf("%s: groups are %q, %v; want %q", name, rules[0].APIGroups, errs, tt.want)
		}
	}
}
