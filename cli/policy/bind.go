package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// bind holds the state of a command that binds a role or removes subjects from a role's bindings.
type bind struct {
	binder
	factory       util.Factory
	streams       genericiooptions.IOStreams
	subject       string // "user" or "group"
	cluster, grow bool
	roleNamespace string
	accounts      []string
	targets       []string
	output        *objects.Output
}

// newBind returns a command that binds a role or, if add is false, removes subjects from a role's
// bindings.
func newBind(factory util.Factory, streams genericiooptions.IOStreams, name, subject string, cluster, add bool) *cobra.Command {
	b := &bind{factory: factory, streams: streams, subject: subject, cluster: cluster, grow: add}
	command := &cobra.Command{
		Use:   name + " ROLE " + map[string]string{"user": "(USER | -z SERVICEACCOUNT)...", "group": "GROUP..."}[subject],
		Short: bindShort(subject, cluster, add),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(b.complete(args))
			util.CheckErr(b.run(command.Context()))
		},
	}
	flags := command.Flags()
	if subject == "user" {
		flags.StringSliceVarP(&b.accounts, "serviceaccount", "z", nil, "Service account of the current project, in place of a user.")
	}
	usage := "Name of the binding to change. Default: all bindings of the role."
	if add {
		usage = "Name of the binding to change or create. Default: a new binding, unless the subjects have the role."
	}
	flags.StringVar(&b.binding, "rolebinding-name", "", usage)
	if !cluster {
		flags.StringVar(&b.roleNamespace, "role-namespace", "", "Project of a local role. Default: the role is a cluster role.")
	}
	b.output = objects.AddOutput(command)
	return command
}

func bindShort(subject string, cluster, add bool) string {
	verb, scope := "Add a role to", "in the current project"
	if !add {
		verb = "Remove a role from"
	}
	if cluster {
		scope = "for all projects in the cluster"
	}
	return verb + " " + subject + "s " + scope
}

// complete checks the arguments. It sets the role, the role's namespace and the subjects.
func (b *bind) complete(args []string) error {
	namespace, _, err := b.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	switch {
	case b.subject == "group" && len(args) < 2:
		return errors.New("you must specify at least two arguments: <role> <group> [group]...")
	case len(args) == 0:
		return errors.New("you must specify a role")
	case len(args) == 1 && len(b.accounts) == 0:
		return errors.New("you must specify at least one user or service account")
	case b.roleNamespace != "" && b.roleNamespace != namespace:
		return fmt.Errorf("role binding in namespace %q can't reference role in different namespace %q", namespace, b.roleNamespace)
	}
	users, err := accountNames(namespace, b.accounts)
	if err != nil {
		return err
	}
	b.role, b.local = args[0], b.roleNamespace != ""
	b.targets = slices.Concat(args[1:], b.accounts)
	if b.subject == "user" {
		b.users = slices.Concat(args[1:], users)
	} else {
		b.groups = args[1:]
	}
	if !b.cluster {
		b.namespace = namespace
	}
	client, err := b.factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	b.client = client.RbacV1()
	return nil
}

// accountNames returns the user names of service accounts in a namespace.
func accountNames(namespace string, accounts []string) (users []string, err error) {
	for _, name := range accounts {
		if strings.HasPrefix(name, serviceaccount.ServiceAccountUsernamePrefix) {
			return nil, errors.New("--serviceaccount (-z) should only be used with short-form serviceaccount names (e.g. `default`)")
		}
		if problems := validation.ValidateServiceAccountName(name, false); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not a valid serviceaccount name:\n  %s", name, strings.Join(problems, "\n  "))
		}
		users = append(users, serviceaccount.MakeUsername(namespace, name))
	}
	return users, nil
}

// run changes the bindings. If -o is set, it only prints the resulting bindings.
func (b *bind) run(ctx context.Context) error {
	change := b.remove
	if b.grow {
		change = b.add
	}
	changes, err := change(ctx)
	if err != nil {
		return err
	}
	if b.grow {
		b.warnOfMissing(ctx, changes)
	}
	if b.output.Set() {
		return b.print(changes)
	}
	if !b.output.DryRun {
		if err := b.apply(ctx, changes); err != nil {
			return err
		}
		b.warnOfReconciliation(changes)
	}
	kind, verb := "role", "removed"
	if b.cluster {
		kind = "cluster role"
	}
	if b.grow {
		verb = "added"
	}
	names := fmt.Sprintf("%q", b.targets)
	if len(b.targets) == 1 {
		names = fmt.Sprintf("%q", b.targets[0])
	}
	fmt.Fprintf(b.streams.Out, "%s %q %s: %s%s\n", kind, b.role, verb, names, b.output.Suffix())
	return nil
}

// print prints the binding. After a removal, it prints the list of bindings.
func (b *bind) print(changes []change) error {
	if b.grow {
		return b.output.Print(b.streams, changes[0].object(b.namespace))
	}
	return b.output.Print(b.streams, listOf(changes, b.namespace))
}

// warnOfMissing prints a warning if the role or a new subject does not exist. This is not an error,
// because they can be created later.
func (b *bind) warnOfMissing(ctx context.Context, changes []change) {
	warn := func(kind, name string, err error) {
		if apierrors.IsNotFound(err) {
			fmt.Fprintf(b.streams.ErrOut, "Warning: %s '%s' not found\n", kind, name)
		}
	}
	var err error
	if b.local {
		_, err = b.client.Roles(b.namespace).Get(ctx, b.role, metav1.GetOptions{})
	} else {
		_, err = b.client.ClusterRoles().Get(ctx, b.role, metav1.GetOptions{})
	}
	warn("role", b.role, err)
	client, err := b.factory.DynamicClient()
	if err != nil {
		return
	}
	for _, subject := range b.subjects() {
		if slices.ContainsFunc(changes, func(c change) bool { return !slices.Contains(c.additions, subject) }) {
			continue
		}
		switch {
		case subject.Kind == rbacv1.UserKind:
			_, err = client.Resource(userv1.GroupVersion.WithResource("users")).Get(ctx, subject.Name, metav1.GetOptions{})
		case subject.Kind == rbacv1.GroupKind:
			_, err = client.Resource(userv1.GroupVersion.WithResource("groups")).Get(ctx, subject.Name, metav1.GetOptions{})
		default:
			accounts := client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(subject.Namespace)
			_, err = accounts.Get(ctx, subject.Name, metav1.GetOptions{})
		}
		warn(subject.Kind, subject.Name, err)
	}
}

// warnOfReconciliation prints a warning about subjects that were removed from default bindings: the
// control plane adds them again when it starts.
func (b *bind) warnOfReconciliation(changes []change) {
	kind := "rolebinding"
	if b.cluster {
		kind = "clusterrolebinding"
	}
	for _, change := range changes {
		if len(change.removals) > 0 && change.Annotations[rbacv1.AutoUpdateAnnotationKey] == "true" {
			fmt.Fprintf(b.streams.ErrOut, "Warning: Your changes may get lost whenever a master is restarted, unless you prevent reconciliation of this"+
				" rolebinding using the following command: oc annotate %s.rbac %s '%s=false' --overwrite\n", kind, change.Name, rbacv1.AutoUpdateAnnotationKey)
		}
	}
}
