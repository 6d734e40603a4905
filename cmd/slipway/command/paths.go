package command

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func pathsCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:     "paths",
		Short:   "Print the locations on this host for paths in OpenShift 3's documents",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadInvalid(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "OPENSHIFT 3\tTHIS HOST\tCONTENT")
			for _, path := range openShiftPaths(h) {
				fmt.Fprintf(table, "%s\t%s\t%s\n", path.documented, cmp.Or(path.path, "-"), path.content)
			}
			return table.Flush()
		},
	}
}
