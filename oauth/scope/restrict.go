package scope

import (
	"fmt"
	"slices"

	oauthv1 "github.com/openshift/api/oauth/v1"
)

// Permit returns an error unless each scope is valid and satisfies at least one of the
// restrictions. Without restrictions, every valid scope is allowed.
func Permit(restrictions []oauthv1.ScopeRestriction, scopes []string) error {
	for _, text := range scopes {
		if err := Validate(text); err != nil {
			return err
		}
		permits := func(r oauthv1.ScopeRestriction) bool { return permit(r, text) }
		if len(restrictions) > 0 && !slices.ContainsFunc(restrictions, permits) {
			return fmt.Errorf("scope %q is not allowed for this client", text)
		}
	}
	return nil
}

func permit(restriction oauthv1.ScopeRestriction, text string) bool {
	if slices.Contains(restriction.ExactValues, text) {
		return true
	}
	roles := restriction.ClusterRole
	role, err := ParseRole(text)
	if roles == nil || err != nil || role.Escalating && !roles.AllowEscalation {
		return false
	}
	return either(roles.RoleNames, role.Name) && either(roles.Namespaces, role.Namespace)
}

// either reports whether a list contains a value or the wildcard `*`.
func either(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}
