package command

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func componentsCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:     "components",
		Aliases: []string{"parts"},
		Short:   "Print the components of this host, with their processes, start order and states",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadInvalid(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			status, err := supervisorStatus(cmd.Context(), h)
			if errors.Is(err, errNotRunning) {
				status = supervisor.Status{Processes: platform.Processes(h)}
			} else if err != nil {
				return err
			}
			return printComponents(cmd.OutOrStdout(), status.Processes)
		},
	}
}

func printComponents(out io.Writer, processes []supervisor.ProcessStatus) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tCOMPONENT\tWAITS FOR\tSTATE\tSTARTED IN")
	for _, process := range processes {
		for _, c := range process.Components {
			after := strings.Join(c.After, ", ")
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", process.Name, c.Name, after, c.State, startDuration(c))
		}
	}
	return table.Flush()
}

// startDuration returns how long a component took to become ready, or "" if it is not ready.
func startDuration(c supervisor.ComponentStatus) string {
	if c.State != component.Ready {
		return ""
	}
	return fmt.Sprintf("%.1fs", c.StartSeconds)
}
