package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// driverStatus describes a driver in the output of `slipway flexvolume list`.
type driverStatus struct {
	Driver       string                          `json:"driver"`
	State        flexvolume.State                `json:"state"`
	Version      string                          `json:"version,omitempty"`
	Capabilities *flexvolume.Capabilities        `json:"capabilities,omitempty"`
	Volumes      flexvolume.Usage                `json:"volumes"`
	Latency      map[string]volumeplugin.Latency `json:"latency,omitempty"`
	// Running contains the calls that have been running for at least slowCall, such as a hanging
	// unmount.
	Running []flexvolume.PastCall `json:"running,omitempty"`
	// Error is the reason why the driver cannot be used. LastFailure is the driver's most recent
	// failed call.
	Error       string              `json:"error,omitempty"`
	LastFailure *flexvolume.Failure `json:"lastFailure,omitempty"`
}

func flexvolumeListCommand(opts *options) *cobra.Command {
	var (
		output   string
		allNodes bool
	)
	command := &cobra.Command{
		Use:   "list",
		Short: "List the drivers: state, version, capabilities, volumes in use on this host, latency, errors",
		Long: "List the drivers of this host. The command initializes each driver, as a node does at its start, so it also works\n" +
			"while Slipway is stopped. A removed driver is listed while volumes need its copy.\n" +
			"If Slipway runs, the list contains the mean latency of the slowest operation since the start, and with -o json the\n" +
			"latency of each operation. Below the list are the last failed call of each driver with the driver's message and the\n" +
			"time, the calls that hang, and the reasons why drivers cannot be used.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			if allNodes {
				return writeDrivers(cmd.Context(), cmd.OutOrStdout(), h, output, listNodeDrivers, printNodeDrivers)
			}
			return writeDrivers(cmd.Context(), cmd.OutOrStdout(), h, output, listDrivers, printDrivers)
		},
	}
	command.Flags().BoolVarP(&allNodes, "all-nodes", "A", false, "list the drivers of all nodes of the cluster, as the nodes report them")
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}

// writeDrivers writes the drivers that list returns, either as JSON or by calling print.
func writeDrivers[T any](
	ctx context.Context, out io.Writer, h *host.Host, format string,
	list func(context.Context, *host.Host) ([]T, error), print func(io.Writer, []T) error,
) error {
	if format != "" && format != "json" {
		return fmt.Errorf("unknown output format %q; use json, or omit -o", format)
	}
	drivers, err := list(ctx, h)
	if err != nil {
		return err
	}
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(drivers)
	}
	return print(out, drivers)
}

// listDrivers returns all installed drivers, and the removed drivers that still have a last-good
// copy on the node.
func listDrivers(ctx context.Context, h *host.Host) ([]driverStatus, error) {
	entries, err := flexvolume.Inspect(ctx, h.Node.VolumePluginDir(), h.DriverSettings)
	if err != nil {
		return nil, err
	}
	drivers := []driverStatus{}
	copies := flexvolume.LastGoodVersions(h.DriverCopies(host.Node))
	for _, e := range entries {
		status := driverStatus{Driver: e.Name, State: e.State, Version: e.Version}
		if e.Driver != nil {
			caps := e.Driver.Capabilities()
			status.Capabilities = &caps
		}
		if errors.Is(e.Err, flexvolume.ErrNotInstalled) && copies[e.Name] != "" {
			continue
		}
		if e.Err != nil {
			status.Error = e.Err.Error()
		}
		delete(copies, e.Name)
		drivers = append(drivers, status)
	}
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		drivers = append(drivers, driverStatus{Driver: name, State: flexvolume.StateRemoved, Version: copies[name]})
	}
	latencies := driverLatencies(ctx, h)
	for i := range drivers {
		d := &drivers[i]
		d.Volumes = flexvolume.UsageOf(h.Node.VolumeDirectory, d.Driver)
		d.Latency = latencies[d.Driver]
		d.LastFailure = lastFailure(h, d.Driver)
		d.Running = slowCalls(h, d.Driver)
	}
	return drivers, nil
}

// slowCall is the duration after which a running call is listed.
const slowCall = 10 * time.Second

// slowCalls returns a driver's calls that have been running for at least slowCall.
func slowCalls(h *host.Host, driver string) (calls []flexvolume.PastCall) {
	for _, process := range []string{host.ControlPlane, host.Node} {
		calls = append(calls, flexvolume.RunningCalls(h.DriverCopies(process), driver)...)
	}
	return slices.DeleteFunc(calls, func(c flexvolume.PastCall) bool { return c.Seconds < slowCall.Seconds() })
}

// lastFailure returns a driver's most recent failed call in the control plane or on the node, or
// nil.
func lastFailure(h *host.Host, driver string) *flexvolume.Failure {
	var last *flexvolume.Failure
	for _, process := range []string{host.ControlPlane, host.Node} {
		failure, err := flexvolume.LastFailure(h.DriverCopies(process), driver)
		if err == nil && (last == nil || failure.Time.After(last.Time)) {
			last = &failure
		}
	}
	return last
}

func printDrivers(out io.Writer, drivers []driverStatus) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DRIVER\tSTATE\tVERSION\tCAPABILITIES\tIN PODS\tDEVICES\tSLOWEST")
	for _, d := range drivers {
		var caps string
		if d.Capabilities != nil {
			caps = d.Capabilities.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%.12s\t%s\t%d\t%d\t%s\n",
			d.Driver, d.State, d.Version, caps, d.Volumes.Pods, d.Volumes.Devices, slowestOperation(d.Latency))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range drivers {
		if d.Error != "" {
			fmt.Fprintf(out, "\n%s: %s\n", d.Driver, d.Error)
		}
		for _, c := range d.Running {
			fmt.Fprintf(out, "\n%s: %s has been running since %s, process %d\n", d.Driver, c, c.Start.Local().Format(time.DateTime), c.PID)
		}
		if failure := d.LastFailure; failure != nil && failure.Message != d.Error {
			fmt.Fprintf(out, "\n%s: last failed call, at %s: %s\n", d.Driver, failure.Time.Local().Format(time.DateTime), failure.Message)
		}
	}
	return nil
}

// driverLatencies returns the latencies from the metrics of the API server and this host's kubelet.
// It omits the latencies of a process that does not respond.
func driverLatencies(ctx context.Context, h *host.Host) volumeplugin.Latencies {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	config, err := h.AdminClient()
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	latencies := volumeplugin.Latencies{}
	for _, path := range []string{"/metrics", "/api/v1/nodes/" + h.Node.NodeName + "/proxy/metrics"} {
		if text, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx); err == nil {
			latencies.Add(text)
		}
	}
	return latencies
}

// slowestOperation returns the operation with the highest mean duration, and this duration.
func slowestOperation(latencies map[string]volumeplugin.Latency) string {
	if len(latencies) == 0 {
		return ""
	}
	name := slices.MaxFunc(slices.Sorted(maps.Keys(latencies)), func(a, b string) int {
		return cmp.Compare(latencies[a].MeanSeconds, latencies[b].MeanSeconds)
	})
	return fmt.Sprintf("%s %.0fms", name, 1000*latencies[name].MeanSeconds)
}
