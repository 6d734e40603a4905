package policy

import (
	"context"

	"k8s.io/client-go/dynamic"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// DifferentClusterRoles returns the default cluster roles that are missing or lack rules. Each name
// has a prefix, as in clusterrole/admin.
func DifferentClusterRoles(ctx context.Context, client rbacclient.RbacV1Interface) ([]string, error) {
	return names((&reconcile{additive: true}).roles(ctx, client, nil))
}

// DifferentClusterRoleBindings returns the default cluster role bindings that are missing or lack
// subjects.
func DifferentClusterRoleBindings(ctx context.Context, client rbacclient.RbacV1Interface) ([]string, error) {
	return names((&reconcile{additive: true}).bindings(ctx, client, nil))
}

// DifferentConstraints returns the default security context constraints that are missing or differ
// from the defaults. It ignores additional users and groups, and a changed priority.
func DifferentConstraints(ctx context.Context, client dynamic.Interface) ([]string, error) {
	const infrastructure = "openshift-infra"
	return names((&reconcile{additive: true}).constraints(ctx, client, infrastructure))
}

func names(changes []changed, err error) (all []string, _ error) {
	for _, change := range changes {
		all = append(all, change.name)
	}
	return all, err
}
