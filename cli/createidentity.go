package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creation is a command below `oc create` that makes one object of the cluster.
type creation struct {
	use, short, long, example string
	args                      cobra.PositionalArgs
	// resource is the plural name in user.openshift.io, and kind the object's.
	resource, kind string
	// flags adds flags; object makes the object of the arguments.
	flags  func(*cobra.Command)
	object func(cmd *cobra.Command, args []string) (map[string]any, error)
}

// command is the cobra command of a creation, with `-o` and `--dry-run`.
func (c creation) command(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	print := genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use: c.use, Short: c.short, Long: c.long, Example: c.example, Args: c.args, DisableFlagsInUseLine: true,
		Run: func(cmd *cobra.Command, args []string) {
			util.CheckErr(c.run(cmd.Context(), factory, print, streams, cmd, args))
		},
	}
	print.AddFlags(command)
	util.AddDryRunFlag(command)
	if c.flags != nil {
		c.flags(command)
	}
	return command
}

func (c creation) run(ctx context.Context, factory util.Factory, print *genericclioptions.PrintFlags, streams genericiooptions.IOStreams, cmd *cobra.Command, args []string) error {
	content, err := c.object(cmd, args)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("user.openshift.io/v1")
	object.SetKind(c.kind)
	dryRun, err := util.GetDryRunStrategy(cmd)
	if err != nil {
		return err
	}
	util.PrintFlagsWithDryRunStrategy(print, dryRun)
	if dryRun != util.DryRunClient {
		client, err := factory.DynamicClient()
		if err != nil {
			return err
		}
		options := metav1.CreateOptions{}
		if dryRun == util.DryRunServer {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if object, err = client.Resource(userResource(c.resource)).Create(ctx, object, options); err != nil {
			return err
		}
	}
	printer, err := print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, streams.Out)
}

// newCreateUser makes `oc create user`.
func newCreateUser(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return creation{
		use: "user USERNAME", short: "Manually create a user (only needed if automatic creation is disabled)",
		long: `Create a user. Corresponding "identity" and "useridentitymapping" objects are needed as well,
so that the user can log in.

Typically, identity providers make users at their first login by themselves.`,
		example: `  # Create a user with the username "ajones" and the display name "Adam Jones"
  oc create user ajones --full-name="Adam Jones"`,
		args: cobra.ExactArgs(1), resource: "users", kind: "User",
		flags: func(cmd *cobra.Command) { cmd.Flags().String("full-name", "", "Display name of the user") },
		object: func(cmd *cobra.Command, args []string) (map[string]any, error) {
			object := map[string]any{"metadata": map[string]any{"name": args[0]}}
			if name, _ := cmd.Flags().GetString("full-name"); name != "" {
				object["fullName"] = name
			}
			return object, nil
		},
	}.command(factory, streams)
}

// newCreateIdentity makes `oc create identity`.
func newCreateIdentity(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return creation{
		use: "identity <PROVIDER_NAME>:<PROVIDER_USER_NAME>", short: "Manually create an identity (only needed if automatic creation is disabled)",
		long: `Create an identity: who someone is for an identity provider. A "useridentitymapping" gives it to a user.`,
		example: `  # Create an identity with identity provider "acme_ldap" and the identity provider username "adamjones"
  oc create identity acme_ldap:adamjones`,
		args: cobra.ExactArgs(1), resource: "identities", kind: "Identity",
		object: func(_ *cobra.Command, args []string) (map[string]any, error) {
			provider, name, ok := strings.Cut(args[0], ":")
			if !ok || provider == "" || name == "" {
				return nil, fmt.Errorf("identity %q must be <PROVIDER_NAME>:<PROVIDER_USER_NAME>", args[0])
			}
			return map[string]any{"metadata": map[string]any{"name": args[0]}, "providerName": provider, "providerUserName": name}, nil
		},
	}.command(factory, streams)
}

// newCreateMapping makes `oc create useridentitymapping`.
func newCreateMapping(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return creation{
		use: "useridentitymapping <IDENTITY_NAME> <USER_NAME>", short: "Manually map an identity to a user",
		long: `Map an identity to a user, who can log in by it then. An identity is of one user; a user may have several.`,
		example: `  # Map the identity "acme_ldap:adamjones" to the user "ajones"
  oc create useridentitymapping acme_ldap:adamjones ajones`,
		args: cobra.ExactArgs(2), resource: "useridentitymappings", kind: "UserIdentityMapping",
		object: func(_ *cobra.Command, args []string) (map[string]any, error) {
			return map[string]any{
				"metadata": map[string]any{"name": args[0]}, "identity": map[string]any{"name": args[0]}, "user": map[string]any{"name": args[1]},
			}, nil
		},
	}.command(factory, streams)
}
