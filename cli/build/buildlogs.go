package build

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewLogs returns the `oc build-logs` command, which predates support for builds in `oc logs`.
func NewLogs(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	follow, noWait := true, false
	command := &cobra.Command{
		Use: "build-logs BUILD", Short: "Show logs from a build", Args: cobra.ExactArgs(1),
		Deprecated: "use oc logs build/NAME instead", Hidden: true,
		Run: func(command *cobra.Command, args []string) {
			client, err := builds(factory)
			util.CheckErr(err)
			if follow && !noWait {
				util.CheckErr(client.Follow(command.Context(), args[0], streams.Out, streams.ErrOut))
				return
			}
			util.CheckErr(client.Written(command.Context(), args[0], streams.Out))
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", follow, "Print the log until the build ends")
	command.Flags().BoolVarP(&noWait, "nowait", "w", noWait, "Print the existing log and exit")
	return command
}
