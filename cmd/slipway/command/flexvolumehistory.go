package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func flexvolumeHistoryCommand(opts *options) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "history [DRIVER|VOLUME]",
		Short: "Show the recent calls of a driver, or for a volume, with their results",
		Long: "Show the recent calls of all drivers of this host, of one driver, or for one volume. The oldest call is first; running calls\n" +
			"are last. Name a volume by its PersistentVolume, its ID in the storage, or its directory. The history contains the last few\n" +
			"hundred calls of each driver.",
		Example: "  slipway flexvolume history example.com/loop\n  slipway flexvolume history pv-data",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			calls, err := pastCalls(h, strings.Join(args, ""))
			if err != nil {
				return err
			}
			switch output {
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(calls)
			case "":
				return printCalls(cmd.OutOrStdout(), calls)
			}
			return fmt.Errorf("unknown output format %q; use json, or omit -o", output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}

// pastCalls returns the recorded calls to a driver or for a volume. subject is the name of the
// driver or the volume. If subject is "", pastCalls returns all recorded calls. It sorts the calls
// by start time, but returns running calls last.
func pastCalls(h *host.Host, subject string) ([]flexvolume.PastCall, error) {
	all := []flexvolume.PastCall{}
	for _, process := range []string{host.ControlPlane, host.Node} {
		calls, err := flexvolume.History(h.DriverCopies(process), "")
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	slices.SortStableFunc(all, func(a, b flexvolume.PastCall) int {
		if (a.PID > 0) != (b.PID > 0) {
			return a.PID - b.PID // sort running calls last
		}
		return a.Start.Compare(b.Start)
	})
	selected := slices.DeleteFunc(all, func(c flexvolume.PastCall) bool {
		return subject != "" && c.Driver != subject && !c.Concerns(subject)
	})
	if len(selected) == 0 && subject != "" {
		return nil, fmt.Errorf("the history has no calls of a driver %q, or for a volume of this name; to list the drivers, run: slipway flexvolume list", subject)
	}
	return selected, nil
}

func printCalls(out io.Writer, calls []flexvolume.PastCall) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tDRIVER\tOPERATION\tVOLUME\tDURATION\tRESULT")
	for _, c := range calls {
		duration := time.Duration(c.Seconds * float64(time.Second)).Round(time.Millisecond)
		volume := c.Volume
		if volume == "" {
			volume = c.Path
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Start.Local().Format(time.DateTime), c.Driver, c.Operation, volume, duration, resultOf(c))
	}
	return table.Flush()
}

// resultOf returns a call's result as a single line.
func resultOf(c flexvolume.PastCall) string {
	switch {
	case c.PID > 0:
		return fmt.Sprintf("running, process %d", c.PID)
	case c.Kind == "":
		return "ok"
	}
	return strings.Join(strings.Fields(c.Message), " ")
}
