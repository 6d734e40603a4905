package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// newSCC returns a command that adds users or groups to security context constraints or, if add is
// false, removes them.
func newSCC(factory util.Factory, streams genericiooptions.IOStreams, name, subject string, add bool) *cobra.Command {
	c := &sccChange{factory: factory, IOStreams: streams, subject: subject, add: add}
	short := "Remove " + subject + "s from security context constraints"
	if add {
		short = "Add " + subject + "s to security context constraints"
	}
	command := &cobra.Command{
		Use:   name + " CONSTRAINTS " + map[string]string{"user": "(USER | -z SERVICEACCOUNT)...", "group": "GROUP..."}[subject],
		Short: short,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(c.validate(args))
			util.CheckErr(c.complete(args))
			util.CheckErr(c.run(command.Context()))
		},
	}
	if subject == "user" {
		command.Flags().StringSliceVarP(&c.accounts, "serviceaccount", "z", nil, "Service account of the current project, instead of a user.")
	}
	c.output = objects.AddOutput(command)
	return command
}

// sccChange holds the state of a command that newSCC returns.
type sccChange struct {
	factory util.Factory
	genericiooptions.IOStreams
	subject  string // "user" or "group"
	add      bool
	accounts []string
	output   *objects.Output

	constraints string
	names       []string // names of users or groups
}

func (c *sccChange) validate(args []string) error {
	switch {
	case c.subject == "group" && len(args) < 2:
		return errors.New("you must specify at least two arguments: <scc> <group> [group]...")
	case len(args) == 0:
		return errors.New("you must specify a scc")
	case len(args) == 1 && len(c.accounts) == 0:
		return errors.New("you must specify at least one user or service account")
	}
	return nil
}

func (c *sccChange) complete(args []string) error {
	namespace, _, err := c.factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	users, err := accountNames(namespace, c.accounts)
	c.constraints, c.names = args[0], slices.Concat(args[1:], users)
	return err
}

func (c *sccChange) run(ctx context.Context) error {
	changed, err := changeSCC(ctx, c.factory, c.constraints, c.subject+"s", c.names, c.add, !c.output.Set() && !c.output.DryRun)
	if err != nil {
		return err
	}
	if c.output.Set() {
		return c.output.Print(c.IOStreams, changed)
	}
	preposition := "removed from"
	if c.add {
		preposition = "added to"
	}
	if c.subject == "group" {
		preposition += " groups"
	}
	fmt.Fprintf(c.Out, "scc %q %s: %q%s\n", c.constraints, preposition, c.names, c.output.Suffix())
	return nil
}

// changeSCC adds subjects to a list field of constraints, or removes them from it. list is the name
// of the field. changeSCC returns the changed constraints, and stores them only if write is true.
func changeSCC(ctx context.Context, factory util.Factory, name, list string, subjects []string, add, write bool) (*unstructured.Unstructured, error) {
	client, err := factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	resource := client.Resource(securityv1.GroupVersion.WithResource("securitycontextconstraints"))
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	present, _, err := unstructured.NestedStringSlice(object.Object, list)
	if err != nil {
		return nil, err
	}
	changed := slices.DeleteFunc(slices.Clone(present), func(name string) bool { return slices.Contains(subjects, name) })
	if add {
		changed = append(changed, subjects...)
	}
	if err := unstructured.SetNestedStringSlice(object.Object, changed, list); err != nil {
		return nil, err
	}
	if !write {
		return object, nil
	}
	return resource.Update(ctx, object, metav1.UpdateOptions{})
}
