package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// masterCommand returns the command that stops and starts control plane components.
func masterCommand(opts *options) *cobra.Command {
	command := &cobra.Command{Use: "master", Short: "Stop and start components of this host's control plane", GroupID: "host"}
	part := strings.Join(host.StoppableParts(), "|")
	command.AddCommand(
		&cobra.Command{
			Use: "stop " + part, Short: "Stop a component of this host's control plane until you start it again", Args: cobra.ExactArgs(1),
			Long: "Stop a component of this host's control plane until you start it again. To do this in OpenShift 3, an administrator moves the\n" +
				"manifest of a static pod to another directory. Without `controllers`, this host runs no controllers and no scheduler; another master takes over, if there is one.\n" +
				"Without `etcd`, this host's API server does not run either. The control plane restarts, and pods continue to run.",
			RunE: func(cmd *cobra.Command, args []string) error { return setStopped(cmd, opts, args[0], true) },
		},
		&cobra.Command{
			Use: "start " + part, Short: "Start a stopped component of the control plane", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return setStopped(cmd, opts, args[0], false) },
		},
	)
	return command
}

// setStopped stops or starts a component of the control plane.
func setStopped(cmd *cobra.Command, opts *options, part string, stop bool) error {
	if !slices.Contains(host.StoppableParts(), part) {
		return fmt.Errorf("the component %q cannot be stopped; use one of %q", part, host.StoppableParts())
	}
	h, err := opts.loadMaster()
	if err != nil {
		return err
	}
	if err := h.SetStopped(part, stop); err != nil {
		return err
	}
	verb := map[bool]string{true: "stopped", false: "started"}[stop]
	if _, err := supervisorStatus(cmd.Context(), h); errors.Is(err, errNotRunning) {
		fmt.Fprintf(cmd.OutOrStdout(), "%s will be %s at the next start\n", part, verb)
		return nil
	}
	parts, err := h.StoppedParts()
	if err != nil {
		return err
	}
	if slices.Contains(parts, host.EtcdPart) {
		err = restartUntil(cmd.Context(), h, host.ControlPlane, etcdStandsBy)
	} else {
		err = restartControlPlane(cmd.Context(), h)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", part, verb)
	return nil
}

// etcdStandsBy reports whether the control plane is running without etcd.
func etcdStandsBy(status supervisor.Status) bool {
	for _, process := range status.Processes {
		for _, c := range process.Components {
			if process.Name == host.ControlPlane && c.Name == host.EtcdPart {
				return c.State == component.Standby
			}
		}
	}
	return false
}

// restartUntil restarts a process. It waits until a new process is running and reached returns true
// for the host's status.
func restartUntil(ctx context.Context, h *host.Host, process string, reached func(supervisor.Status) bool) error {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	before, err := supervisorStatus(ctx, h)
	if err != nil {
		return err
	}
	client := supervisor.NewClient(h.Socket())
	if err := client.Restart(ctx, process); err != nil {
		return err
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the process %s is not ready; see `slipway status` and `slipway logs %s`", process, process)
		case <-ticker.C:
		}
		after, err := client.Status(ctx)
		if err == nil && reached(after) && pidOf(after, process) != pidOf(before, process) {
			return nil
		}
	}
}
