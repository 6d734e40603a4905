package command

import "github.com/spf13/cobra"

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
