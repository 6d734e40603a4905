// Package group implements `oc adm groups`, which manages user groups.
package group

import (
	"context"
	"fmt"
	"slices"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/create"
)

// New returns the `oc adm groups` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "groups", Short: "Manage groups",
		Long: "Manage groups of users. Roles and security context constraints can be granted to groups.",
		Run:  util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newGroupsNew(factory, streams),
		newGroupsChange(factory, streams, "add-users", "Add users to a group", "added", addUsers),
		newGroupsChange(factory, streams, "remove-users", "Remove users from a group", "removed", removeUsers),
		NewGroupsSync(factory, streams),
		NewGroupsPrune(factory, streams),
	)
	return command
}

// newGroupsNew returns the `oc adm groups new` command.
func newGroupsNew(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return create.Creation{
		Use: "new GROUP [USER ...]", Short: "Create a new group",
		Long: "Create a new group, optionally with users. The users need not exist yet.",
		Example: `  # Add a group with no users
  oc adm groups new my-group

  # Add a group with two users
  oc adm groups new my-group user1 user2`,
		Args: cobra.MinimumNArgs(1), Resource: userv1.GroupVersion.WithResource("groups"), Kind: "Group",
		Object: func(_ *cobra.Command, args []string) (map[string]any, error) {
			users := []any{}
			for _, user := range args[1:] {
				users = append(users, user)
			}
			return map[string]any{"metadata": map[string]any{"name": args[0]}, "users": users}, nil
		},
	}.Command(factory, streams)
}

func addUsers(users, names []string) []string {
	for _, user := range names {
		if !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	return users
}

func removeUsers(users, names []string) []string {
	return slices.DeleteFunc(users, func(user string) bool { return slices.Contains(names, user) })
}

// newGroupsChange returns a command that adds users to a group or removes them from it. change
// computes the new list of users.
func newGroupsChange(factory util.Factory, streams genericiooptions.IOStreams, verb, short, done string, change func(users, names []string) []string) *cobra.Command {
	print := genericclioptions.NewPrintFlags(done).WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use: verb + " GROUP USER [USER ...]", Short: short, Long: short + ".", DisableFlagsInUseLine: true,
		Example: fmt.Sprintf("  # %s \"my-group\"\n  oc adm groups %s my-group user1 user2", short, verb),
		Args:    cobra.MinimumNArgs(2),
		Run: func(cmd *cobra.Command, args []string) {
			dryRun, err := util.GetDryRunStrategy(cmd)
			util.CheckErr(err)
			group, err := changeGroup(cmd.Context(), factory, args[0], dryRun, func(users []string) []string { return change(users, args[1:]) })
			util.CheckErr(err)
			print.Complete("%s: " + quoted(args[1:]))
			util.PrintFlagsWithDryRunStrategy(print, dryRun)
			printer, err := print.ToPrinter()
			util.CheckErr(err)
			util.CheckErr(printer.PrintObj(group, streams.Out))
		},
	}
	print.AddFlags(command)
	util.AddDryRunFlag(command)
	return command
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.ReplaceAll(strings.Join(list, ", "), "%", "%%")
}

// changeGroup replaces a group's users with the result of change. It retries if the update
// conflicts with another update.
func changeGroup(ctx context.Context, factory util.Factory, name string, dryRun util.DryRunStrategy, change func([]string) []string) (group *unstructured.Unstructured, err error) {
	client, err := factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	groups := client.Resource(userv1.GroupVersion.WithResource("groups"))
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if group, err = groups.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		users, _, err := unstructured.NestedStringSlice(group.Object, "users")
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedStringSlice(group.Object, change(users), "users"); err != nil {
			return err
		}
		options := metav1.UpdateOptions{}
		switch dryRun {
		case util.DryRunClient:
			return nil
		case util.DryRunServer:
			options.DryRun = []string{metav1.DryRunAll}
		}
		group, err = groups.Update(ctx, group, options)
		return err
	})
	return group, err
}
