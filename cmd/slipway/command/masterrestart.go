package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
)

// restartTimeout is the maximum time to wait until the control plane is ready after a restart.
const restartTimeout = 3 * time.Minute

// masterComponents lists the arguments that the command accepts: the arguments of OpenShift 3.11's
// master-restart, and scheduler.
var masterComponents = []string{"api", "controllers", "scheduler", "etcd"}

// masterRestartCommand returns the command that restarts the control plane, as OpenShift 3.11's
// master-restart program does.
func masterRestartCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "master-restart api|controllers|scheduler|etcd",
		Short: "Restart this host's control plane, and wait until it is ready",
		Long: "Restart this host's control plane, and wait until it is ready. API server, controllers, scheduler and etcd are one process,\n" +
			"so every argument restarts all of them. Pods continue to run. If the program is called master-restart, it runs this command.",
		GroupID: "host",
		Args:    cobra.RangeArgs(1, 2), // OpenShift 3.11 also accepts a container's name
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(masterComponents, args[0]) {
				return fmt.Errorf("restart %q: a master has no such component; use one of %q", args[0], masterComponents)
			}
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			if err := restartControlPlane(cmd.Context(), h); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "The control plane is ready.")
			return nil
		},
	}
}

// restartControlPlane restarts the control plane and waits until the new process is ready.
func restartControlPlane(ctx context.Context, h *host.Host) error {
	return restartUntil(ctx, h, host.ControlPlane, func(status supervisor.Status) bool { return status.Ready })
}

// pidOf returns the PID of a process, or 0 if it is not running.
func pidOf(status supervisor.Status, process string) int {
	for _, p := range status.Processes {
		if p.Name == process {
			return p.PID
		}
	}
	return 0
}
