package create

import (
	"fmt"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewUser returns the `oc create user` command.
func NewUser(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "user USERNAME", Short: "Manually create a user (only needed if automatic creation is disabled)",
		Long: `Create a user. To log in, the user also needs an "identity" and a "useridentitymapping"
object.

Usually, identity providers create users at their first login.`,
		Example: `  # Create a user with the username "ajones" and the display name "Adam Jones"
  oc create user ajones --full-name="Adam Jones"`,
		Args: cobra.ExactArgs(1), Resource: userv1.GroupVersion.WithResource("users"), Kind: "User",
		flags: func(cmd *cobra.Command) { cmd.Flags().String("full-name", "", "Display name of the user") },
		Object: func(cmd *cobra.Command, args []string) (map[string]any, error) {
			object := map[string]any{"metadata": map[string]any{"name": args[0]}}
			if name, _ := cmd.Flags().GetString("full-name"); name != "" {
				object["fullName"] = name
			}
			return object, nil
		},
	}.Command(factory, streams)
}

// NewIdentity returns the `oc create identity` command.
func NewIdentity(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "identity <PROVIDER_NAME>:<PROVIDER_USER_NAME>", Short: "Manually create an identity (only needed if automatic creation is disabled)",
		Long: `Create an identity: a user as one identity provider knows them. A "useridentitymapping" maps it to a user.`,
		Example: `  # Create an identity with identity provider "acme_ldap" and the identity provider username "adamjones"
  oc create identity acme_ldap:adamjones`,
		Args: cobra.ExactArgs(1), Resource: userv1.GroupVersion.WithResource("identities"), Kind: "Identity",
		Object: func(_ *cobra.Command, args []string) (map[string]any, error) {
			provider, name, ok := strings.Cut(args[0], ":")
			if !ok || provider == "" || name == "" {
				return nil, fmt.Errorf("identity %q must be <PROVIDER_NAME>:<PROVIDER_USER_NAME>", args[0])
			}
			return map[string]any{"metadata": map[string]any{"name": args[0]}, "providerName": provider, "providerUserName": name}, nil
		},
	}.Command(factory, streams)
}

// NewMapping returns the `oc create useridentitymapping` command.
func NewMapping(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "useridentitymapping <IDENTITY_NAME> <USER_NAME>", Short: "Manually map an identity to a user",
		Long: `Map an identity to a user, who can then log in with it. An identity belongs to one user. A user can have several identities.`,
		Example: `  # Map the identity "acme_ldap:adamjones" to the user "ajones"
  oc create useridentitymapping acme_ldap:adamjones ajones`,
		Args: cobra.ExactArgs(2), Resource: userv1.GroupVersion.WithResource("useridentitymappings"), Kind: "UserIdentityMapping",
		Object: func(_ *cobra.Command, args []string) (map[string]any, error) {
			return map[string]any{
				"metadata": map[string]any{"name": args[0]}, "identity": map[string]any{"name": args[0]}, "user": map[string]any{"name": args[1]},
			}, nil
		},
	}.Command(factory, streams)
}
