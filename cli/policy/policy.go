// Package policy implements `oc policy` and `oc adm policy`, which grant and review permissions.
package policy

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns the `oc policy` command. If administrator is true, it returns `oc adm policy`, which
// also has cluster-wide commands.
func New(factory util.Factory, streams genericiooptions.IOStreams, administrator bool) *cobra.Command {
	policy := &cobra.Command{Use: "policy", Short: "Manage authorization policy", Run: util.DefaultSubCommandRun(streams.ErrOut)}
	for _, subject := range []string{"user", "group"} {
		policy.AddCommand(
			newBind(factory, streams, "add-role-to-"+subject, subject, false, true),
			newBind(factory, streams, "remove-role-from-"+subject, subject, false, false),
			newRemoveSubject(factory, streams, subject),
		)
		if administrator {
			policy.AddCommand(
				newBind(factory, streams, "add-cluster-role-to-"+subject, subject, true, true),
				newBind(factory, streams, "remove-cluster-role-from-"+subject, subject, true, false),
				newSCC(factory, streams, "add-scc-to-"+subject, subject, true),
				newSCC(factory, streams, "remove-scc-from-"+subject, subject, false),
			)
		}
	}
	policy.AddCommand(newWhoCan(factory, streams), newCanI(factory, streams), newSCCSubjectReview(factory, streams), newSCCReview(factory, streams))
	if administrator {
		policy.AddCommand(newReconcileRoles(factory, streams), newReconcileBindings(factory, streams), newReconcileSCCs(factory, streams))
	}
	return policy
}

// BindUser binds a cluster role to a user in a namespace.
func BindUser(ctx context.Context, client rbacclient.RbacV1Interface, namespace, role, user string) error {
	b := &binder{client: client, namespace: namespace, role: role, users: []string{user}}
	changes, err := b.add(ctx)
	if err != nil {
		return err
	}
	return b.apply(ctx, changes)
}
