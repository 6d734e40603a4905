package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// subjectRemover holds the state of `remove-user` and `remove-group`.
type subjectRemover struct {
	binder  binder
	output  *objects.Output
	streams genericiooptions.IOStreams
}

// newRemoveSubject returns the `remove-user` or `remove-group` command, which removes subjects from
// all role bindings in the project.
func newRemoveSubject(factory util.Factory, streams genericiooptions.IOStreams, subject string) *cobra.Command {
	r := &subjectRemover{streams: streams}
	command := &cobra.Command{
		Use:   "remove-" + subject + " NAME...",
		Short: "Remove " + subject + "s from the current project",
		Run: func(command *cobra.Command, args []string) {
			if len(args) == 0 {
				util.CheckErr(fmt.Errorf("you must specify at least one argument: <%s> [%s]", subject, subject))
			}
			if subject == "user" {
				r.binder.users = args
			} else {
				r.binder.groups = args
			}
			util.CheckErr(r.complete(factory))
			util.CheckErr(r.run(command.Context()))
		},
	}
	r.output = objects.AddOutput(command)
	return command
}

func (r *subjectRemover) complete(factory util.Factory) error {
	client, err := factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	r.binder.client = client.RbacV1()
	r.binder.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return err
}

// run removes the subjects from all bindings, and prints the roles that the subjects lose.
func (r *subjectRemover) run(ctx context.Context) error {
	b, output, streams := &r.binder, r.output, r.streams
	changes, err := b.remove(ctx)
	if err != nil && !errors.Is(err, errNoTarget) {
		return err
	}
	if output.Set() {
		return output.Print(streams, listOf(changes, b.namespace))
	}
	if !output.DryRun {
		if err := b.apply(ctx, changes); err != nil {
			return err
		}
	}
	var removed []string
	for _, change := range changes {
		role := change.ref.Name
		if change.ref.Kind != "ClusterRole" {
			role = b.namespace + "/" + role
		}
		for _, kind := range []struct{ kind, plural string }{
			{rbacv1.UserKind, "users"}, {rbacv1.GroupKind, "groups"}, {rbacv1.ServiceAccountKind, "serviceaccounts"},
		} {
			names := namesOf(change.removals, kind.kind)
			if len(names) > 0 {
				fmt.Fprintf(streams.Out, "Removing %s from %s %v in project %s%s.\n", role, kind.plural, names, b.namespace, output.Suffix())
			}
		}
		for _, subject := range change.removals {
			removed = append(removed, nameOf(subject))
		}
	}
	for _, list := range []struct {
		title string
		names []string
	}{{"Users", b.users}, {"Groups", b.groups}} {
		rest := slices.DeleteFunc(slices.Clone(list.names), func(name string) bool { return slices.Contains(removed, name) })
		if len(rest) > 0 {
			fmt.Fprintf(streams.Out, "%s %v were not bound to roles in project %s%s.\n", list.title, rest, b.namespace, output.Suffix())
		}
	}
	return nil
}

// namesOf returns the sorted names of the subjects of the given kind.
func namesOf(subjects []rbacv1.Subject, kind string) (names []string) {
	for _, subject := range subjects {
		if subject.Kind == kind {
			names = append(names, subject.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nameOf returns a subject's name. For a service account, it returns the account's user name.
func nameOf(subject rbacv1.Subject) string {
	if subject.Kind == rbacv1.ServiceAccountKind {
		return serviceaccount.MakeUsername(subject.Namespace, subject.Name)
	}
	return subject.Name
}
