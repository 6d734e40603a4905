package platform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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
			logs := map[string]string{}
			for _, name := range append([]string{supervisorName}, processNames()...) {
				logs[name] = h.logFile(name)
			}
			if len(args) == 1 {
				name, err := processOf(args[0])
				if err != nil {
					return err
				}
				logs = map[string]string{name: logs[name]}
			}
			return printLogs(cmd.Context(), cmd.OutOrStdout(), logs, lines, follow)
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing as lines are written")
	command.Flags().IntVarP(&lines, "lines", "n", 100, "how many of the last lines to print of each log")
	return command
}

// processOf is the process that a part, or the process itself, is found in.
func processOf(name string) (string, error) {
	known := []string{supervisorName}
	if name == supervisorName {
		return name, nil
	}
	for _, process := range composition() {
		known = append(known, process.Name)
		if process.Name == name {
			return name, nil
		}
		for _, part := range process.Parts {
			if part.Name == name {
				return process.Name, nil
			}
			known = append(known, part.Name)
		}
	}
	slices.Sort(known)
	return "", fmt.Errorf("no part is named %q; there are: %s", name, strings.Join(slices.Compact(known), ", "))
}
