package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// whoami is what `oc whoami` shows.
type whoami struct {
	context, server, token bool
}

func newWhoami(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &whoami{}
	command := &cobra.Command{
		Use:   "whoami",
		Short: "Return information about the current session",
		Long:  `Show who the server takes you for, or which token, context or server is in use.`,
		Example: `  # Display the currently authenticated user
  oc whoami`,
		Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			text, err := o.find(cmd.Context(), factory)
			util.CheckErr(err)
			fmt.Fprintln(streams.Out, text)
		},
	}
	command.Flags().BoolVarP(&o.context, "show-context", "c", false, "Print the current user context name")
	command.Flags().BoolVar(&o.server, "show-server", false, "If true, print the current server's REST API URL")
	command.Flags().BoolVarP(&o.token, "show-token", "t", false, "Print the token the current session is using. This will return an error if you are using a different form of authentication.")
	return command
}

func (o *whoami) find(ctx context.Context, factory util.Factory) (string, error) {
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
	config, err := factory.ToRESTConfig()
	switch {
	case err != nil:
		return "", err
	case o.server:
		return config.Host, nil
	case o.token && config.BearerToken == "":
		return "", errors.New("no token is currently in use for this session")
	case o.token:
		return config.BearerToken, nil
	}
	return whoIs(ctx, config)
}
