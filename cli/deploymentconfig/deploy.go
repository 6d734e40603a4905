package deploymentconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// deploy holds the state of `oc deploy`. Without an action flag, the command prints the
// deployments.
type deploy struct {
	latest, retry, cancel, enable, follow bool
}

// NewDeploy returns the `oc deploy` command, which predates support for deployment configs in `oc
// rollout`.
func NewDeploy(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	d := &deploy{}
	command := &cobra.Command{
		Use:   "deploy DEPLOYMENTCONFIG [--latest | --retry | --cancel | --enable-triggers]",
		Short: "View, start, cancel, or retry a deployment",
		Long: `Show the deployments of a deployment config, or start, retry or cancel one.

oc rollout has more options.`,
		Example: `  oc deploy web
  oc deploy web --latest --follow
  oc deploy web --cancel`,
		Args: cobra.ExactArgs(1), Deprecated: "use the oc rollout commands", Hidden: true,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(d.validate())
			name, err := configName(factory, args[0])
			util.CheckErr(err)
			client, namespace, err := deployments(factory)
			util.CheckErr(err)
			util.CheckErr(d.run(command.Context(), client, namespace, name, streams.Out))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&d.latest, "latest", false, "Start a new deployment with the current images.")
	flags.BoolVar(&d.retry, "retry", false, "Retry the latest deployment, if it failed.")
	flags.BoolVar(&d.cancel, "cancel", false, "Cancel the deployment that is in progress.")
	flags.BoolVar(&d.enable, "enable-triggers", false, "Enable image triggers.")
	flags.BoolVar(&d.follow, "follow", false, "With --latest or --retry, print the deployment's log until it ends.")
	return command
}

func (d *deploy) validate() error {
	count := 0
	for _, set := range []bool{d.latest, d.retry, d.cancel, d.enable} {
		if set {
			count++
		}
	}
	switch {
	case count > 1:
		return errors.New("use only one of --latest, --retry, --cancel and --enable-triggers")
	case d.follow && !d.latest && !d.retry:
		return errors.New("--follow needs --latest or --retry")
	}
	return nil
}

func (d *deploy) run(ctx context.Context, client *Client, namespace, name string, out io.Writer) error {
	switch {
	case d.enable:
		images, err := client.EnableTriggers(ctx, namespace, name)
		if err == nil {
			fmt.Fprintf(out, "Enabled image triggers: %s\n", strings.Join(images, ","))
		}
		return err
	case d.cancel:
		_, done, err := client.Cancel(ctx, namespace, name)
		if err == nil {
			fmt.Fprintf(out, "%s: %s\n", name, done)
		}
		return err
	case !d.latest && !d.retry:
		text, err := client.ViewHistory(namespace, name, 0)
		if err == nil {
			fmt.Fprintln(out, strings.TrimSuffix(text, "\n"))
		}
		return err
	}
	start, message := client.Retry, "Retried"
	if d.latest {
		message = "Started deployment"
		start = client.Start
	}
	dc, _, err := start(ctx, namespace, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s #%d\n", message, dc.Status.LatestVersion)
	if d.follow {
		return client.Follow(ctx, namespace, name, dc.Status.LatestVersion, out)
	}
	fmt.Fprintf(out, "Use 'oc logs -f dc/%s' to track its progress.\n", name)
	return nil
}
