package login

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd/util"
)

// whoami holds the state of `oc whoami`.
type whoami struct {
	context, server, token bool
}

// NewWhoami returns the `oc whoami` command.
func NewWhoami(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &whoami{}
	command := &cobra.Command{
		Use:   "whoami",
		Short: "Return information about the current session",
		Long:  `Print the current user, or the current token, context or server.`,
		Example: `  # Display the currently authenticated user
  oc whoami`,
		Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			text, err := o.find(cmd, factory)
			util.CheckErr(err)
			fmt.Fprintln(streams.Out, text)
		},
	}
	command.Flags().BoolVarP(&o.context, "show-context", "c", false, "Print the current user context name")
	command.Flags().BoolVar(&o.server, "show-server", false, "If true, print the current server's REST API URL")
	command.Flags().BoolVarP(&o.token, "show-token", "t", false, "Print the token the current session is using. This will return an error if you are using a different form of authentication.")
	return command
}

func (o *whoami) find(cmd *cobra.Command, factory util.Factory) (string, error) {
	raw, err := factory.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "", err
	}
	if o.context {
		if raw.CurrentContext == "" {
			return "", errors.New("no context has been set")
		}
		return raw.CurrentContext, nil
	}
	if o.server {
		if context, ok := raw.Contexts[raw.CurrentContext]; ok && raw.Clusters[context.Cluster] != nil {
			return raw.Clusters[context.Cluster].Server, nil
		}
		return "", errors.New("no server has been set")
	}
	authenticated := hasCredentials(raw, cmd) || api.IsConfigEmpty(&raw) && inCluster()
	if !authenticated && o.token {
		return "", errors.New("no token is currently in use for this session")
	}
	if !authenticated {
		return "", errors.New("You must be logged in to the server (Unauthorized)")
	}
	config, err := factory.ToRESTConfig()
	switch {
	case err != nil:
		return "", err
	case o.token && config.BearerToken == "":
		return "", errors.New("no token is currently in use for this session")
	case o.token:
		return config.BearerToken, nil
	}
	return whoIs(cmd.Context(), config)
}

// inCluster reports whether the client runs in a pod with a service account token. The client uses
// this token if no kubeconfig exists.
func inCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}

// hasCredentials reports whether the flags or the kubeconfig contain credentials. Without
// credentials, the client would prompt for a user name.
func hasCredentials(raw api.Config, cmd *cobra.Command) bool {
	for _, flag := range []string{"token", "client-certificate", "username"} {
		if value, _ := cmd.Flags().GetString(flag); value != "" {
			return true
		}
	}
	context, ok := raw.Contexts[raw.CurrentContext]
	if !ok || raw.AuthInfos[context.AuthInfo] == nil {
		return false
	}
	info := raw.AuthInfos[context.AuthInfo]
	return info.Token != "" || info.TokenFile != "" || len(info.ClientCertificateData) > 0 || info.ClientCertificate != "" || info.Exec != nil ||
		info.AuthProvider != nil || info.Username != ""
}
