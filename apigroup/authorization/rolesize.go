package authorization

import (
	"context"
	"fmt"
	"math"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// RoleSizePluginName is the name of the admission plugin that limits the size of roles.
const RoleSizePluginName = "authorization.openshift.io/RoleSize"

// maxGrants is the maximum number of grants in a role. Grants are the combinations of verb, group,
// resource and name in the role's rules. The admin role has 1,650 grants.
const maxGrants = 5_000

// roleSize is the admission plugin that limits the size of roles. Upstream checks each grant of a
// role against each rule of the role's author. A rule with a thousand verbs, a thousand groups and
// a thousand resources contains a billion grants, which require more memory than the machine has.
// The plugin is a mutating plugin, because upstream's check precedes validating plugins. Members of
// system:masters are exempt, because upstream does not check their grants.
type roleSize struct{ *admission.Handler }

var _ admission.MutationInterface = roleSize{}

func newRoleSize() roleSize {
	return roleSize{admission.NewHandler(admission.Create, admission.Update)}
}

// Admit rejects a role with too many grants.
func (roleSize) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != rbacv1.GroupName || slices.Contains(a.GetUserInfo().GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	var rules []rbacv1.PolicyRule
	switch role := a.GetObject().(type) {
	case *rbacv1.Role:
		rules = role.Rules
	case *rbacv1.ClusterRole:
		rules = role.Rules
	}
	if grants(rules) > maxGrants {
		return admission.NewForbidden(a, fmt.Errorf("the role has more than %d combinations of verb, group, resource and name; divide it into several roles", maxGrants))
	}
	return nil
}

// grants returns the number of grants in rules, or math.MaxInt if the number exceeds the limit.
func grants(rules []rbacv1.PolicyRule) (total int) {
	for i := range rules {
		rule := &rules[i]
		count := len(rule.Verbs)
		for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs} {
			if count > maxGrants {
				return math.MaxInt
			}
			count *= max(1, len(list))
		}
		if total += max(1, count); total > maxGrants {
			return math.MaxInt
		}
	}
	return total
}
