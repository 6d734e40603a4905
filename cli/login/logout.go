package login

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewLogout returns the `oc logout` command.
func NewLogout(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "End the current server session",
		Long: `Log out of the server of the current context. The command deletes the token on the
server and in the configuration file. It keeps credentials that are not a token.`,
		Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			util.CheckErr(logout(cmd.Context(), factory, cmd, streams))
		},
	}
}

func logout(ctx context.Context, factory util.Factory, cmd *cobra.Command, streams genericiooptions.IOStreams) error {
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	if config.BearerToken == "" {
		return errors.New("You must have a token in order to logout.")
	}
	name, err := whoIs(ctx, config)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	tokens := schema.GroupVersionResource{Group: "oauth.openshift.io", Version: "v1", Resource: "oauthaccesstokens"}
	if err := client.Resource(tokens).Delete(ctx, tokenName(config.BearerToken), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete token of %q: %w", name, err)
	}
	if err := forgetToken(cmd, config.BearerToken); err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "Logged %q out on %q\n", name, config.Host)
	return nil
}

// tokenName returns the name of the OAuthAccessToken object of a token. If the server generated the
// token, the name contains the hash of the token. Otherwise, the name is the token itself.
func tokenName(token string) string {
	secret, hashed := strings.CutPrefix(token, "sha256~")
	if !hashed {
		return token
	}
	hash := sha256.Sum256([]byte(secret))
	return "sha256~" + base64.RawURLEncoding.EncodeToString(hash[:])
}

// forgetToken removes a token from all users in the kubeconfig.
func forgetToken(cmd *cobra.Command, token string) error {
	paths := clientcmd.NewDefaultPathOptions()
	if file, _ := cmd.Flags().GetString("kubeconfig"); file != "" {
		paths.LoadingRules.ExplicitPath = file
	}
	config, err := paths.GetStartingConfig()
	if err != nil {
		return err
	}
	for _, info := range config.AuthInfos {
		if info.Token == token {
			info.Token = ""
		}
	}
	if err := clientcmd.ModifyConfig(paths, *config, false); err != nil {
		return fmt.Errorf("save configuration: %w", err)
	}
	return nil
}
