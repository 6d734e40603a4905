package command

import "github.com/spf13/cobra"

func flexvolumeCommand(opts *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "flexvolume",
		Short: "List, install, remove, call and check FlexVolume drivers of this host",
		Long: "List, install, remove, call and check FlexVolume drivers of this host, and show their calls. The commands work without a\n" +
			"running cluster, and changes need no restart.",
		GroupID: "host",
	}
	command.AddCommand(
		flexvolumeListCommand(opts), flexvolumeHistoryCommand(opts), flexvolumeInstallCommand(opts), flexvolumeRemoveCommand(opts),
		flexvolumeCallCommand(opts), flexvolumeCheckCommand(opts),
	)
	return command
}
