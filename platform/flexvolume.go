package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func flexvolumeCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "flexvolume",
		Short: "List, install, remove, call and check FlexVolume drivers of this host",
		Long: "List, install, remove, call and check FlexVolume drivers of this host. None of it needs a running cluster,\n" +
			"and nothing has to be restarted after it.",
		GroupID: "host",
	}
	command.AddCommand(
		flexvolumeListCommand(opts), flexvolumeInstallCommand(opts), flexvolumeRemoveCommand(opts),
		flexvolumeCallCommand(opts), flexvolumeCheckCommand(opts),
	)
	return command
}

// listedDriver is a line of `slipway flexvolume list`.
type listedDriver struct {
	Driver       string                    `json:"driver"`
	State        flexvolume.State          `json:"state"`
	Version      string                    `json:"version,omitempty"`
	Capabilities *flexvolume.Capabilities  `json:"capabilities,omitempty"`
	Volumes      flexvolume.Usage          `json:"volumes"`
	Latency      map[string]latencySummary `json:"latency,omitempty"`
	// Error is why the driver cannot be used now, and LastFailure what went wrong last in a call.
	Error       string              `json:"error,omitempty"`
	LastFailure *flexvolume.Failure `json:"lastFailure,omitempty"`
}

func flexvolumeListCommand(opts *options) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the drivers: state, version, capabilities, volumes in use on this host, latency, errors",
		Long: "List the drivers of this host. Each is asked itself, with init, as a node does at its start, so that the list is the\n" +
			"same whether Slipway runs or not. A driver that was removed is listed while a copy of it is kept for its volumes.\n" +
			"The latency of calls is added where Slipway runs: the mean since its start of the operation that takes longest,\n" +
			"and with -o json that of each. Below the list stand the call of each driver that failed last, with the driver's\n" +
			"message and the time, and why a driver cannot be used.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			listed, err := h.listDrivers(cmd.Context())
			if err != nil {
				return err
			}
			switch output {
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(listed)
			case "":
				return printDrivers(cmd.OutOrStdout(), listed)
			}
			return fmt.Errorf("output format %q is unknown; use json or leave it out", output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}

// listDrivers is every installed driver, and every other of which a copy is kept on the node.
func (h *host) listDrivers(ctx context.Context) ([]listedDriver, error) {
	entries, err := flexvolume.Inspect(ctx, h.Node.VolumePluginDir(), h.driverSettings)
	if err != nil {
		return nil, err
	}
	listed := []listedDriver{}
	kept := flexvolume.LastGoodVersions(h.keptDrivers(nodeName))
	for _, e := range entries {
		one := listedDriver{Driver: e.Name, State: e.State, Version: e.Version}
		if e.Driver != nil {
			caps := e.Driver.Capabilities()
			one.Capabilities = &caps
		}
		if errors.Is(e.Err, flexvolume.ErrNotInstalled) && kept[e.Name] != "" {
			continue
		}
		if e.Err != nil {
			one.Error = e.Err.Error()
		}
		delete(kept, e.Name)
		listed = append(listed, one)
	}
	for _, driver := range slices.Sorted(maps.Keys(kept)) {
		listed = append(listed, listedDriver{Driver: driver, State: flexvolume.StateRemoved, Version: kept[driver]})
	}
	latencies := h.driverLatencies(ctx)
	for i := range listed {
		listed[i].Volumes = flexvolume.UsageOf(h.Node.VolumeDirectory, listed[i].Driver)
		listed[i].Latency = latencies[listed[i].Driver]
		listed[i].LastFailure = h.lastFailure(listed[i].Driver)
	}
	return listed, nil
}

// lastFailure is the last failed call of a driver by either of the processes that call drivers, or nil.
func (h *host) lastFailure(driver string) *flexvolume.Failure {
	var last *flexvolume.Failure
	for _, process := range []string{controlPlaneName, nodeName} {
		failure, err := flexvolume.LastFailure(h.keptDrivers(process), driver)
		if err == nil && (last == nil || failure.Time.After(last.Time)) {
			last = &failure
		}
	}
	return last
}

func printDrivers(out io.Writer, listed []listedDriver) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DRIVER\tSTATE\tVERSION\tCAPABILITIES\tIN PODS\tDEVICES\tSLOWEST")
	for _, one := range listed {
		var caps string
		if one.Capabilities != nil {
			caps = one.Capabilities.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%.12s\t%s\t%d\t%d\t%s\n",
			one.Driver, one.State, one.Version, caps, one.Volumes.Pods, one.Volumes.Devices, slowestOperation(one.Latency))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, one := range listed {
		if one.Error != "" {
			fmt.Fprintf(out, "\n%s: %s\n", one.Driver, one.Error)
		}
		if failure := one.LastFailure; failure != nil {
			fmt.Fprintf(out, "\n%s: last failed call, at %s: %s\n", one.Driver, failure.Time.Local().Format(time.DateTime), failure.Message)
		}
	}
	return nil
}

func flexvolumeInstallCommand(opts *options) *cobra.Command {
	var driver string
	command := &cobra.Command{
		Use:   "install FILE --driver vendor/name",
		Short: "Install a driver, or another version of it, without a restart of anything",
		Long: "Copy FILE into the plug-in directory of this host, so that nobody ever runs a part of it, and wait until a\n" +
			"running Slipway has taken it over. Do it on each host of the cluster.",
		Example: "  slipway flexvolume install ./loop --driver example.com/loop",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			installed, err := flexvolume.Install(h.Node.VolumePluginDir(), driver, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "installed %s as %s, version %.12s\n", driver, installed.Path, installed.Version)
			return h.awaitDriver(cmd.Context(), cmd.OutOrStdout(), installed)
		},
	}
	command.Flags().StringVar(&driver, "driver", "", "name of the driver, as volumes refer to it: vendor/name")
	_ = command.MarkFlagRequired("driver")
	return command
}

// takeOver is how long a running host may take to initialize a driver before it is said that it has not.
const takeOver = 15 * time.Second

// awaitDriver waits until both processes of a running host that call drivers have initialized this version, which they show by
// keeping a copy of it.
func (h *host) awaitDriver(ctx context.Context, out io.Writer, installed flexvolume.Installation) error {
	status, err := newClient(h.socket()).status(ctx)
	if errors.Is(err, errNotRunning) {
		fmt.Fprintln(out, "slipway is not running; the driver is used from its next start on")
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, takeOver)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting []string
		for _, process := range status.Processes {
			if process.Name != controlPlaneName && process.Name != nodeName {
				continue
			}
			if flexvolume.LastGoodVersions(h.keptDrivers(process.Name))[installed.Driver] != installed.Version {
				waiting = append(waiting, process.Name)
			}
		}
		if len(waiting) == 0 {
			fmt.Fprintln(out, "ready: volumes of it are attached and mounted with this version from now on")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to initialize FlexVolume driver %q: not within %s; see slipway flexvolume list and slipway logs %s",
				strings.Join(waiting, " and "), installed.Driver, takeOver, waiting[0])
		case <-tick.C:
		}
	}
}

func flexvolumeRemoveCommand(opts *options) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:   "remove DRIVER",
		Short: "Remove a driver from this host",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			driver := args[0]
			usage := flexvolume.UsageOf(h.Node.VolumeDirectory, driver)
			if usage != (flexvolume.Usage{}) && !force {
				return fmt.Errorf("remove FlexVolume driver %q: %d volumes of pods and %d devices of it are in use on this host; delete the pods, "+
					"or use --force: running pods keep their volumes, which are unmounted with a kept copy of the driver", driver, usage.Pods, usage.Devices)
			}
			left, err := flexvolume.Remove(h.Node.VolumePluginDir(), driver)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", driver)
			for _, file := range left {
				fmt.Fprintf(cmd.OutOrStdout(), "left %s, which is not the driver\n", file)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&force, "force", false, "remove the driver although volumes of it are in use")
	return command
}
