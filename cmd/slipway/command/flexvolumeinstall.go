package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func flexvolumeInstallCommand(opts *options) *cobra.Command {
	var (
		driver string
		force  bool
	)
	command := &cobra.Command{
		Use:   "install FILE --driver vendor/name",
		Short: "Install a driver, or another version of it, without a restart",
		Long: "Run init of the driver in FILE. If init succeeds, copy FILE into the plugin directory of this host and wait until\n" +
			"the running cluster uses it. If init fails, change nothing, so that an earlier version stays in use; --force installs\n" +
			"the driver anyway. Repeat the command on each host of the cluster.",
		Example: "  slipway flexvolume install ./loop --driver example.com/loop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			if !force {
				err := flexvolume.TryInstall(cmd.Context(), h.Node.VolumePluginDir(), driver, args[0], h.DriverSettings(driver))
				if err != nil {
					return fmt.Errorf("%w; nothing was installed (--force installs it anyway)", err)
				}
			}
			installed, err := flexvolume.Install(h.Node.VolumePluginDir(), driver, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "installed %s as %s, version %.12s\n", driver, installed.Path, installed.Version)
			return awaitDriver(cmd.Context(), cmd.OutOrStdout(), h, installed)
		},
	}
	command.Flags().StringVar(&driver, "driver", "", "name of the driver, as volumes refer to it: vendor/name")
	command.Flags().BoolVar(&force, "force", false, "install the driver even if its init fails now")
	_ = command.MarkFlagRequired("driver")
	return command
}

// initTimeout is the maximum time that awaitDriver waits.
const initTimeout = 15 * time.Second

// awaitDriver waits until the control plane and the node of a running host have initialized this
// version of a driver. After that, each of them has a last-good copy of the driver.
func awaitDriver(ctx context.Context, out io.Writer, h *host.Host, installed flexvolume.Installation) error {
	status, err := supervisorStatus(ctx, h)
	if errors.Is(err, errNotRunning) {
		fmt.Fprintln(out, "slipway is not running; it uses the driver after its next start")
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		var waiting []string
		for _, process := range status.Processes {
			if process.Name != host.ControlPlane && process.Name != host.Node {
				continue
			}
			if flexvolume.LastGoodVersions(h.DriverCopies(process.Name))[installed.Driver] != installed.Version {
				waiting = append(waiting, process.Name)
			}
		}
		if len(waiting) == 0 {
			fmt.Fprintln(out, "ready: this version attaches and mounts volumes from now on")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to initialize FlexVolume driver %q: it is not ready after %s; see `slipway flexvolume list` and `slipway logs %s`",
				strings.Join(waiting, " and "), installed.Driver, initTimeout, waiting[0])
		case <-ticker.C:
		}
	}
}
