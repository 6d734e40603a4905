package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// errNotReady makes `slipway status` exit with status 1 after it has printed the status.
var errNotReady = errors.New("not everything is ready")

// hostStatus is the output of `slipway status -o json`.
type hostStatus struct {
	supervisor.Status
	Nodes []nodeStatus `json:"nodes,omitempty"`
	// Stopped contains the control plane components that the administrator has stopped.
	Stopped []string `json:"stopped,omitempty"`
	// Snapshots describes the scheduled etcd snapshots. It is nil on a host that is only a node.
	Snapshots *snapshotStatus `json:"etcdSnapshots,omitempty"`
}

func statusCommand(opts *options) *cobra.Command {
	var output string
	var cluster, network bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Print the health of each process and node",
		Long: "Print the health of each process and node. Components are listed only if they are not ready; `slipway components` prints\n" +
			"all of them. The exit status is 0 if everything is ready, otherwise 1.",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadInvalid(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			switch {
			case cluster && network:
				return errors.New("use either --cluster or --network")
			case cluster:
				return printCluster(cmd, h, output)
			case network:
				return printNetwork(cmd, h, output)
			}
			var status hostStatus
			if status.Status, err = supervisorStatus(cmd.Context(), h); err != nil {
				return err
			}
			status.Nodes = clusterStatus(cmd.Context(), h)
			status.Snapshots, status.Stopped = snapshotsOf(h), stoppedOf(h)
			err = printAs(cmd.OutOrStdout(), output, status, func(out io.Writer) error { return writeStatus(out, status) })
			if err == nil && !status.Ready {
				return errNotReady
			}
			return err
		},
	}
	command.Flags().BoolVar(&cluster, "cluster", false, "on a master: print all hosts of the cluster, the etcd members and the leaders")
	command.Flags().BoolVar(&network, "network", false, "print the network of this host: its settings, policies and egress IPs, and whether other hosts respond")
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}

// printAs prints a value in an output format: as JSON, or as text with write.
func printAs(out io.Writer, format string, value any, write func(io.Writer) error) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "":
		return printEscaped(out, write)
	}
	return fmt.Errorf("unknown output format %q; use json, or omit -o", format)
}

// printEscaped prints the output of write. It escapes control characters, because some of the
// output comes from nodes.
func printEscaped(out io.Writer, write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	return printers.WriteEscaped(out, text.String())
}

func writeStatus(out io.Writer, status hostStatus) error {
	fmt.Fprintf(out, "Slipway %s   data %s   up %s\n\n", status.Version, status.DataDir, age(status.Started))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tSTATE\tSINCE\tRESTARTS\tPID\tCOMPONENTS")
	for _, process := range status.Processes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", process.Name, process.State, age(process.Since), process.Restarts, process.PID, countStates(process.Components))
		for _, c := range process.Components {
			if c.State != component.Ready {
				fmt.Fprintf(table, "  %s\t%s\t%s\t\t\t\n", c.Name, c.State, age(c.Since))
			}
		}
	}
	fmt.Fprintln(table, "\t\t\t\t\t")
	fmt.Fprintln(table, "NODE\tREADY\tADDRESS\tPODS\t\t")
	for _, node := range status.Nodes {
		fmt.Fprintf(table, "%s\t%t\t%s\t%d\t\t\n", node.Name, node.Ready, node.Address, node.Pods)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if status.Snapshots != nil {
		fmt.Fprintf(out, "\n%s\n", status.Snapshots)
	}
	printProblems(out, status)
	return nil
}

// stoppedOf returns the control plane components that the administrator has stopped.
func stoppedOf(h *host.Host) []string {
	parts, err := h.StoppedParts()
	if err != nil || h.Joined() {
		return nil
	}
	return parts
}

// printProblems prints the problems that an administrator might have to solve.
func printProblems(out io.Writer, status hostStatus) {
	for _, part := range status.Stopped {
		fmt.Fprintf(out, "\n%s is stopped on this host; to start it, run: slipway master start %[1]s\n", part)
	}
	for _, process := range status.Processes {
		if process.LastError != "" {
			fmt.Fprintf(out, "\n%s last ended with: %s\n  see: slipway logs %s\n", process.Name, process.LastError, process.Name)
		}
	}
	for _, process := range status.Processes {
		for _, c := range process.Components {
			if c.Note != "" {
				fmt.Fprintf(out, "\n%s: %s\n", c.Name, c.Note)
			}
		}
	}
	for _, node := range status.Nodes {
		if !node.Ready {
			fmt.Fprintf(out, "\nnode %s is not ready: %s\n", node.Name, node.Message)
		}
		for _, reason := range node.Refuses {
			fmt.Fprintf(out, "\nnode %s accepts no more pods: %s\n", node.Name, reason)
		}
	}
}

// age returns the time since t, rounded to seconds, or "" if t is zero.
func age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return time.Since(t).Round(time.Second).String()
}
