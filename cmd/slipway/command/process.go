package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/platform/host"
)

func controlPlaneCommand(opts *options) *cobra.Command {
	return processCommand(opts, host.ControlPlane, "Run the control plane's components (started by the supervisor)", platform.RunControlPlane)
}

func nodeCommand(opts *options) *cobra.Command {
	return processCommand(opts, host.Node, "Run the node's components (started by the supervisor)", platform.RunNode)
}

func containerdCommand(opts *options) *cobra.Command {
	return processCommand(opts, host.Containerd, "Configure containerd and execute it (started by the supervisor)", platform.ExecContainerd)
}

func processCommand(opts *options, name, short string, run func(context.Context, *host.Host) error) *cobra.Command {
	return &cobra.Command{
		Use:    name,
		Short:  short,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			setLogOutput(os.Stderr)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			h, err := opts.load()
			if err != nil {
				return err
			}
			return run(ctx, h)
		},
	}
}
