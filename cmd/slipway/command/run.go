package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/supervisor"
)

func runCommand(opts *options) *cobra.Command {
	var checked bool
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the cluster in the foreground, for systemd or a container",
		Long: "Run the cluster in the foreground until SIGTERM or SIGINT. Pods continue to run when it ends, and the\n" +
			"next start adopts them. `slipway down` stops them, too. The command notifies systemd when everything is ready.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return run(ctx, opts, checked)
		},
	}
	command.Flags().BoolVar(&checked, platform.CheckedFlag, false, "skip the checks of the machine, which already ran")
	_ = command.Flags().MarkHidden(platform.CheckedFlag) // cannot fail: the flag exists
	return command
}

func run(ctx context.Context, opts *options, checked bool) error {
	setLogOutput(os.Stderr)
	if opts.file == "" {
		if err := config.WriteDefaults(opts.dataDir); err != nil {
			return err
		}
	}
	h, err := opts.load()
	if err != nil {
		return err
	}
	lock, err := supervisor.Lock(h.DataDir, h.RunDir())
	if err != nil {
		return err
	}
	defer lock.Close()
	if !checked {
		if err := h.Preflight(ctx, os.Stderr); err != nil {
			return err
		}
	}
	return platform.Supervise(ctx, h, lock)
}
