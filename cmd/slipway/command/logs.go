package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/supervisor/logfile"
)

func logsCommand(opts *options) *cobra.Command {
	var follow bool
	var lines int
	command := &cobra.Command{
		Use:   "logs [part]",
		Short: "Print logs: of the process that a part runs in, or of all",
		Long: "Print the last lines of the log of a process, named by itself or by one of its parts, or of all\n" +
			"processes with their names in front. Parts of one process share its log.",
		GroupID: "look",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			paths := map[string]string{platform.Supervisor: h.LogFile(platform.Supervisor)}
			for _, process := range platform.Processes() {
				paths[process.Name] = h.LogFile(process.Name)
			}
			if len(args) == 1 {
				name, err := processOf(args[0])
				if err != nil {
					return err
				}
				paths = map[string]string{name: paths[name]}
			}
			return logfile.Print(cmd.Context(), cmd.OutOrStdout(), paths, lines, follow)
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing as lines are written")
	command.Flags().IntVarP(&lines, "lines", "n", 100, "how many of the last lines to print of each log")
	return command
}

// processOf returns the process of a component, or of a process.
func processOf(name string) (string, error) {
	if name == platform.Supervisor {
		return name, nil
	}
	names := []string{platform.Supervisor}
	for _, process := range platform.Processes() {
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
	return "", fmt.Errorf("no part is named %q; there are: %s", name, strings.Join(slices.Compact(names), ", "))
}
