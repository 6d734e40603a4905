package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newCreateUser makes `oc create user`.
func newCreateUser(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return creation{
		use: "user USERNAME", short: "Manually create a user (only needed if automatic creation is disabled)",
		long: `Create a user. Corresponding "identity" and "useridentitymapping" objects are needed as well,
so that the user can log in.

Typically, identity providers make users at their first login by themselves.`,
		example: `  # Create a user with the username "ajones" and the display name "Adam Jones"
  oc create user ajones --full-name="Adam Jones"`,
		args: cobra.ExactArgs(1), resource: userResource("users"), kind: "User",
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
		args: cobra.ExactArgs(1), resource: userResource("identities"), kind: "Identity",
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
		args: cobra.ExactArgs(2), resource: userResource("useridentitymappings"), kind: "UserIdentityMapping",
		object: func(_ *cobra.Command, args []string) (map[string]any, error) {
			return map[string]any{
				"metadata": map[string]any{"name": args[0]}, "identity": map[string]any{"name": args[0]}, "user": map[string]any{"name": args[1]},
			}, nil
		},
	}.command(factory, streams)
}
