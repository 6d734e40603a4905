// Package policy grants and reviews rights: `oc policy` and `oc adm policy`.
package policy

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns `oc policy`, and with the commands for the whole cluster `oc adm policy`.
func New(factory util.Factory, streams genericiooptions.IOStreams, administrator bool) *cobra.Command {
	policy := &cobra.Command{Use: "policy", Short: "Manage who may do what", Run: util.DefaultSubCommandRun(streams.ErrOut)}
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

// binder adds subjects to bindings of a role, or takes them away.
type binder struct {
	client         rbacclient.RbacV1Interface
	namespace      string // empty for the whole cluster
	role           string
	local          bool   // the role is one of the namespace
	binding        string // the binding to use; empty to find one or make one
	users, groups  []string
	serviceAccount []string
}

// BindUser binds a cluster role to a user in a namespace.
func BindUser(ctx context.Context, client rbacclient.RbacV1Interface, namespace, role, user string) error {
	b := &binder{client: client, namespace: namespace, role: role, users: []string{user}}
	return b.add(ctx)
}

// newBind returns one of the commands that bind a role or take it away.
func newBind(factory util.Factory, streams genericiooptions.IOStreams, name, subject string, cluster, add bool) *cobra.Command {
	b := &binder{}
	roleNamespace := ""
	command := &cobra.Command{
		Use:   name + " ROLE " + map[string]string{"user": "(USER | -z SERVICEACCOUNT)...", "group": "GROUP..."}[subject],
		Short: bindShort(subject, cluster, add),
		Run: func(command *cobra.Command, args []string) {
			if len(args) < 1 || len(args) < 2 && len(b.serviceAccount) == 0 {
				util.CheckErr(util.UsageErrorf(command, "name a role and at least one %s", subject))
			}
			client, err := factory.KubernetesClientSet()
			util.CheckErr(err)
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			b.client, b.role, b.local = client.RbacV1(), args[0], roleNamespace != ""
			accounts := b.accountsOf(namespace)
			if subject == "user" {
				b.users = append(slices.Clone(args[1:]), accounts...)
			} else {
				b.groups = args[1:]
			}
			if !cluster {
				b.namespace = namespace
			}
			if roleNamespace != "" && roleNamespace != namespace {
				util.CheckErr(fmt.Errorf("--role-namespace is %q, must be the project of the binding, %q", roleNamespace, namespace))
			}
			what := "added"
			if add {
				util.CheckErr(b.add(command.Context()))
			} else {
				what = "removed"
				util.CheckErr(b.remove(command.Context()))
			}
			kind := "role"
			if cluster {
				kind = "cluster role"
			}
			names := args[1:]
			if len(b.serviceAccount) > 0 {
				names = append(slices.Clone(names), b.serviceAccount...)
			}
			fmt.Fprintf(streams.Out, "%s %q %s: %q\n", kind, b.role, what, names)
		},
	}
	if subject == "user" {
		command.Flags().StringSliceVarP(&b.serviceAccount, "serviceaccount", "z", nil, "Service account of the current project, in place of a user.")
	}
	if add {
		command.Flags().StringVar(&b.binding, "rolebinding-name", "", "Binding to change or make; by default one of the role, or a new one named after it.")
	}
	if !cluster {
		command.Flags().StringVar(&roleNamespace, "role-namespace", "", "Project of a local role; by default the role is one of the cluster.")
	}
	return command
}

func bindShort(subject string, cluster, add bool) string {
	verb, where := "Add a role to", "in the current project"
	if !add {
		verb = "Remove a role from"
	}
	if cluster {
		where = "for all projects in the cluster"
	}
	return verb + " " + subject + "s " + where
}

// accountsOf are the users that the service accounts of the flag -z are.
func (b *binder) accountsOf(namespace string) (users []string) {
	for _, name := range b.serviceAccount {
		users = append(users, serviceaccount.MakeUsername(namespace, name))
	}
	return users
}

// subjects are those that the binder is about.
func (b *binder) subjects() (subjects []rbacv1.Subject) {
	for _, name := range b.users {
		if namespace, account, err := serviceaccount.SplitUsername(name); err == nil {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account})
			continue
		}
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
	}
	for _, name := range b.groups {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name})
	}
	return subjects
}

func (b *binder) ref() rbacv1.RoleRef {
	kind := "ClusterRole"
	if b.local {
		kind = "Role"
	}
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: b.role}
}

// bound is a binding of either sort.
type bound struct {
	metav1.ObjectMeta
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
	stored   bool
}

// list are the bindings of the namespace or of the cluster.
func (b *binder) list(ctx context.Context) (found []bound, err error) {
	if b.namespace == "" {
		list, err := b.client.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, one := range list.Items {
			found = append(found, bound{one.ObjectMeta, one.RoleRef, one.Subjects, true})
		}
		return found, nil
	}
	list, err := b.client.RoleBindings(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, one := range list.Items {
		found = append(found, bound{one.ObjectMeta, one.RoleRef, one.Subjects, true})
	}
	return found, nil
}

// write makes or changes a binding.
func (b *binder) write(ctx context.Context, one bound) (err error) {
	if b.namespace == "" {
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: one.ObjectMeta, RoleRef: one.ref, Subjects: one.subjects}
		if !one.stored {
			_, err = b.client.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		} else {
			_, err = b.client.ClusterRoleBindings().Update(ctx, binding, metav1.UpdateOptions{})
		}
		return err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: one.ObjectMeta, RoleRef: one.ref, Subjects: one.subjects}
	if !one.stored {
		_, err = b.client.RoleBindings(b.namespace).Create(ctx, binding, metav1.CreateOptions{})
	} else {
		_, err = b.client.RoleBindings(b.namespace).Update(ctx, binding, metav1.UpdateOptions{})
	}
	return err
}

// add binds the role: in the binding that was named, or else in a new one, which is named after the
// role and, where that name is taken, numbered (admin, admin-0), as in OpenShift 3. Subjects that
// have the role already need none.
func (b *binder) add(ctx context.Context) error {
	found, err := b.list(ctx)
	if err != nil {
		return err
	}
	missing := b.subjects()
	taken := map[string]bool{}
	for _, one := range found {
		taken[one.Name] = true
		if one.Name == b.binding {
			if one.ref != b.ref() {
				return fmt.Errorf("binding %q is of the role %q and not of %q", one.Name, one.ref.Name, b.role)
			}
			for _, s := range missing {
				if !slices.Contains(one.subjects, s) {
					one.subjects = append(one.subjects, s)
				}
			}
			return b.write(ctx, one)
		}
	}
	if b.binding == "" {
		for _, one := range found {
			if one.ref == b.ref() {
				missing = slices.DeleteFunc(missing, func(s rbacv1.Subject) bool { return slices.Contains(one.subjects, s) })
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	name := b.binding
	if name == "" {
		name = b.role
		for number := 0; taken[name]; number++ {
			name = b.role + "-" + strconv.Itoa(number)
		}
	}
	return b.write(ctx, bound{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}, ref: b.ref(), subjects: missing})
}

// remove takes the subjects out of the bindings of the role, or of every role when none is named. A
// binding that is left without subjects goes, unless it is one of the defaults, which would come
// back.
func (b *binder) remove(ctx context.Context) error {
	found, err := b.list(ctx)
	if err != nil {
		return err
	}
	gone := b.subjects()
	removed := false
	for _, one := range found {
		if b.role != "" && one.ref != b.ref() {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(one.subjects), func(s rbacv1.Subject) bool { return slices.Contains(gone, s) })
		if len(left) == len(one.subjects) {
			continue
		}
		removed = true
		one.subjects = left
		if len(left) > 0 || one.Annotations[rbacv1.AutoUpdateAnnotationKey] != "" {
			err = b.write(ctx, one)
		} else if b.namespace == "" {
			err = b.client.ClusterRoleBindings().Delete(ctx, one.Name, metav1.DeleteOptions{})
		} else {
			err = b.client.RoleBindings(b.namespace).Delete(ctx, one.Name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if !removed {
		return fmt.Errorf("unable to find a binding of the role %q for these subjects", b.role)
	}
	return nil
}

// newRemoveSubject returns `remove-user` and `remove-group`: every role of the project is taken
// away.
func newRemoveSubject(factory util.Factory, streams genericiooptions.IOStreams, subject string) *cobra.Command {
	return &cobra.Command{
		Use:   "remove-" + subject + " NAME...",
		Short: "Remove " + subject + "s from the current project",
		Args:  cobra.MinimumNArgs(1),
		Run: func(command *cobra.Command, args []string) {
			client, err := factory.KubernetesClientSet()
			util.CheckErr(err)
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			b := &binder{client: client.RbacV1(), namespace: namespace}
			if subject == "user" {
				b.users = args
			} else {
				b.groups = args
			}
			util.CheckErr(b.remove(command.Context()))
			fmt.Fprintf(streams.Out, "removed from project %q: %q\n", namespace, args)
		},
	}
}
