package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/slipway/installation"
	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

func logsCommand(opts *options) *cobra.Command {
	var (
		follow bool
		tail   int
		since  time.Duration

		pattern, level string
	)
	command := &cobra.Command{
		Use:   "logs [COMPONENT|PROCESS]",
		Short: "Print the log of a component or process, or of all processes",
		Long: "Print the log of a process, or the lines of a component from the log of its process.\n" +
			"Without an argument, print the logs of all processes in order of time, each line with its process.\n\n" +
			"Prints the last 100 lines of each log. With --since, prints all lines since then. --tail -1 prints the complete log.\n" +
			"--grep and --level select lines; --tail counts only selected lines.",
		Example: "  slipway logs kubelet -f\n" +
			"  slipway logs --since 10m --level warning\n" +
			"  slipway logs kubelet --grep 'volume.*web' --tail -1",
		GroupID: "look",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := logfile.NewFilter(pattern, level)
			if err != nil {
				return err
			}
			h, err := opts.load()
			if err != nil {
				return err
			}
			paths := map[string]string{host.Supervisor: h.LogFile(host.Supervisor)}
			for _, process := range platform.Processes(h) {
				paths[process.Name] = h.LogFile(process.Name)
			}
			if len(args) == 1 {
				name, err := processOf(h, args[0])
				if err != nil {
					return err
				}
				paths = map[string]string{name: paths[name]}
				if name != args[0] {
					filter = filter.ForComponent(args[0])
				}
			}
			selection := logfile.Selection{Tail: tail, Filter: filter}
			if since != 0 {
				selection.Since = time.Now().Add(-since)
				if !cmd.Flags().Changed("tail") {
					selection.Tail = -1
				}
			}
			if _, isSelected := paths[host.Supervisor]; isSelected && logsToJournal(h) {
				fmt.Fprintf(cmd.ErrOrStderr(), "The log of %s is in systemd's journal; run: %s\n", host.Supervisor, journal)
			}
			return logfile.Print(cmd.Context(), cmd.OutOrStdout(), paths, selection, follow)
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "print new lines as they are written")
	flags.IntVarP(&tail, "tail", "n", 100, "number of last lines of each log; -1 prints all")
	flags.DurationVar(&since, "since", 0, "print only lines that are at most this old, such as 30s, 10m or 2h")
	flags.StringVar(&pattern, "grep", "", "print only lines that match this regular expression, regardless of case")
	flags.StringVar(&level, "level", "", "print only lines of this level or a higher one: info, warning or error")
	return command
}

// processOf returns the process that runs a component. name is the name of the component or of the
// process itself.
func processOf(h *host.Host, name string) (string, error) {
	if name == host.Supervisor {
		return name, nil
	}
	names := []string{host.Supervisor}
	for _, process := range platform.Processes(h) {
		names = append(names, process.Name)
		if process.Name == name {
			return name, nil
		}
		for _, c := range process.Components {
			if c.Name == name {
				return process.Name, nil
			}
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return "", fmt.Errorf("unknown component %q; choose one of: %s", name, strings.Join(slices.Compact(names), ", "))
}

// logsToJournal reports whether the supervisor runs as a service. In this case, it writes its log
// to systemd's journal.
func logsToJournal(h *host.Host) bool {
	installed, err := installation.Host().Installed(h.DataDir)
	return err == nil && installed
}
