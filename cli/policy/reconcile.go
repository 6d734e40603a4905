package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/bootstrap/policy"
	"github.com/slipway-platform/slipway/cli/objects"
)

// reconcile restores the cluster's default objects. If --confirm is not set, it only prints the
// changes.
type reconcile struct {
	genericiooptions.IOStreams
	print    *genericclioptions.PrintFlags
	confirm  bool
	additive bool

	excludedUsers, excludedGroups []string
}

// changed is a default object that does not exist in the cluster or differs from the existing
// object.
type changed struct {
	object runtime.Object
	// name is the object's name in messages, such as clusterrole/admin.
	name string
}

// command adds flags and a run function to a command. find returns the changes that the arguments
// select. If --confirm is set, find also stores the changes.
func (r *reconcile) command(factory util.Factory, command *cobra.Command, find func(context.Context, util.Factory, []string) ([]changed, error)) *cobra.Command {
	r.print = genericclioptions.NewPrintFlags("").WithDefaultOutput("yaml").WithTypeSetter(scheme.Scheme)
	command.Run = func(command *cobra.Command, args []string) {
		changes, err := find(command.Context(), factory, args)
		util.CheckErr(err)
		util.CheckErr(r.report(changes))
	}
	r.print.AddFlags(command)
	command.Flags().BoolVar(&r.confirm, "confirm", false, "Make the changes. Without this flag, the command only prints them.")
	command.Flags().BoolVar(&r.additive, "additive-only", true, "Keep additions to the defaults.")
	return command
}

// skip prints the name of a protected object that was skipped. It prints nothing if --confirm is
// not set.
func (r *reconcile) skip(name string) {
	if r.confirm {
		fmt.Fprintln(r.ErrOut, "skipped: "+name)
	}
}

func (r *reconcile) report(changes []changed) error {
	if len(changes) == 0 {
		return nil
	}
	if r.confirm {
		for _, change := range changes {
			fmt.Fprintln(r.Out, change.name)
		}
		return nil
	}
	var changed []runtime.Object
	for _, change := range changes {
		changed = append(changed, change.object)
	}
	printer, err := r.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(objects.ListOf(changed), r.Out)
}

// newReconcileRoles returns the `oc adm policy reconcile-cluster-roles` command.
func newReconcileRoles(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r := &reconcile{IOStreams: streams}
	return r.command(factory, &cobra.Command{
		Use:   "reconcile-cluster-roles [ROLE ...]",
		Short: "Update cluster roles to match the recommended bootstrap policy",
		Long: `Restore the default cluster roles to their state at the first start.

Without --confirm, the command only prints the changes. Added rules stay unless --additive-only=false is given. Roles with the
annotation openshift.io/reconcile-protect=true or rbac.authorization.kubernetes.io/autoupdate=false don't change.`,
		Example: `  # Print the roles that would change
  oc adm policy reconcile-cluster-roles

  # Restore missing rules of the role admin
  oc adm policy reconcile-cluster-roles admin --confirm`,
	}, func(ctx context.Context, factory util.Factory, names []string) ([]changed, error) {
		client, err := factory.KubernetesClientSet()
		if err != nil {
			return nil, err
		}
		return r.roles(ctx, client.RbacV1(), names)
	})
}

func (r *reconcile) roles(ctx context.Context, client rbacclient.RbacV1Interface, names []string) (changes []changed, err error) {
	roles, err := policy.AllRoles()
	if err != nil {
		return nil, err
	}
	names = slices.Clone(names)
	for i, name := range names {
		if kind, bare, ok := strings.Cut(name, "/"); ok && slices.Contains([]string{"clusterrole", "clusterroles"}, kind) {
			name, names[i] = bare, bare
		}
		if !slices.ContainsFunc(roles, func(role rbacv1.ClusterRole) bool { return role.Name == name }) {
			return nil, fmt.Errorf("reconcile cluster role %q: it is not a default role", name)
		}
	}
	list, err := client.ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list cluster roles: %w", err)
	}
	protected := map[string]bool{}
	for i := range list.Items {
		protected[list.Items[i].Name] = policy.Protected(&list.Items[i])
	}
	for i := range roles {
		if len(names) > 0 && !slices.Contains(names, roles[i].Name) {
			continue
		}
		if protected[roles[i].Name] {
			r.skip("clusterrole/" + roles[i].Name)
			continue
		}
		options := reconciliation.ReconcileRoleOptions{
			Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: &roles[i]}, Confirm: r.confirm, RemoveExtraPermissions: !r.additive,
			Client: reconciliation.ClusterRoleModifier{Client: client.ClusterRoles()},
		}
		result, err := options.Run()
		if err != nil {
			return nil, fmt.Errorf("reconcile cluster role %q: %w", roles[i].Name, err)
		}
		if result.Operation == reconciliation.ReconcileNone || result.Protected {
			continue
		}
		object := result.Role.GetObject()
		object.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		changes = append(changes, changed{object, "clusterrole/" + roles[i].Name})
	}
	return changes, nil
}

// newReconcileBindings returns the `oc adm policy reconcile-cluster-role-bindings` command.
func newReconcileBindings(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r := &reconcile{IOStreams: streams}
	command := r.command(factory, &cobra.Command{
		Use:   "reconcile-cluster-role-bindings [ROLE ...]",
		Short: "Update cluster role bindings to match the recommended bootstrap policy",
		Long: `Restore the default cluster role bindings, or only the bindings of some roles, to their state at the first start.

Without --confirm, the command only prints the changes. Added subjects stay unless --additive-only=false is given. Bindings
with the annotation openshift.io/reconcile-protect=true or rbac.authorization.kubernetes.io/autoupdate=false don't change.`,
		Example: `  # Print the bindings that would change
  oc adm policy reconcile-cluster-role-bindings

  # Restore the bindings of the role basic-user, except for a group
  oc adm policy reconcile-cluster-role-bindings basic-user --exclude-groups=system:authenticated --confirm`,
	}, func(ctx context.Context, factory util.Factory, names []string) ([]changed, error) {
		client, err := factory.KubernetesClientSet()
		if err != nil {
			return nil, err
		}
		return r.bindings(ctx, client.RbacV1(), names)
	})
	command.Flags().StringSliceVar(&r.excludedUsers, "exclude-users", nil, "Users to exclude.")
	command.Flags().StringSliceVar(&r.excludedGroups, "exclude-groups", nil, "Groups to exclude.")
	return command
}

func (r *reconcile) bindings(ctx context.Context, client rbacclient.RbacV1Interface, names []string) (changes []changed, err error) {
	bindings, err := policy.AllBindings()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(bindings, func(b rbacv1.ClusterRoleBinding) bool { return b.RoleRef.Name == name }) {
			return nil, fmt.Errorf("reconcile bindings of cluster role %q: it has no default binding", name)
		}
	}
	list, err := client.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list cluster role bindings: %w", err)
	}
	existing := map[string]*rbacv1.ClusterRoleBinding{}
	for i := range list.Items {
		existing[list.Items[i].Name] = &list.Items[i]
	}
	for i := range bindings {
		if len(names) > 0 && !slices.Contains(names, bindings[i].RoleRef.Name) {
			continue
		}
		current := existing[bindings[i].Name]
		if current != nil && policy.Protected(current) {
			r.skip("clusterrolebinding/" + bindings[i].Name)
			continue
		}
		bindings[i].Subjects = slices.DeleteFunc(bindings[i].Subjects, r.excluded)
		if current != nil && current.RoleRef != bindings[i].RoleRef {
			r.keepAdditions(&bindings[i], current)
		}
		options := reconciliation.ReconcileRoleBindingOptions{
			RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &bindings[i]}, Confirm: r.confirm, RemoveExtraSubjects: !r.additive,
			Client: reconciliation.ClusterRoleBindingClientAdapter{Client: client.ClusterRoleBindings()},
		}
		result, err := options.Run()
		if err != nil {
			return nil, fmt.Errorf("reconcile cluster role binding %q: %w", bindings[i].Name, err)
		}
		if result.Operation == reconciliation.ReconcileNone || result.Protected {
			continue
		}
		object := result.RoleBinding.GetObject()
		object.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"))
		changes = append(changes, changed{object, "clusterrolebinding/" + bindings[i].Name})
	}
	return changes, nil
}

// keepAdditions copies additional labels and annotations from the current binding to the default
// binding. If r.additive is set, it also copies additional subjects. If the current binding refers
// to a different role, the default binding replaces it, because a binding's role is immutable.
func (r *reconcile) keepAdditions(binding, current *rbacv1.ClusterRoleBinding) {
	binding.Labels, binding.Annotations = merged(current.Labels, binding.Labels), merged(current.Annotations, binding.Annotations)
	if !r.additive {
		return
	}
	for _, subject := range current.Subjects {
		if !slices.Contains(binding.Subjects, subject) {
			binding.Subjects = append(binding.Subjects, subject)
		}
	}
}

// merged returns the entries of both maps. Entries in over take precedence.
func merged(base, over map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, over)
	return all
}

func (r *reconcile) excluded(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.UserKind && slices.Contains(r.excludedUsers, s.Name) || s.Kind == rbacv1.GroupKind && slices.Contains(r.excludedGroups, s.Name)
}
