package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/deploymentconfig"
)

// newLogs makes `oc logs`: kubectl's, which shows the logs of deployments and builds too.
func newLogs(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command, options, version := logs.NewCmdLogs(factory, streams), logs.NewLogsOptions(streams), int64(0)
	command.ResetFlags() // they belong to the options of kubectl's command
	options.AddFlags(command)
	command.Flags().Int64Var(&version, "version", 0, "Number of the deployment of a deployment config, or of the build of a build config, whose log is shown; the latest by default.")
	command.Run = func(command *cobra.Command, args []string) {
		util.CheckErr(options.Complete(factory, command, args))
		options.LogsForObject = build.Log(version, streams.ErrOut, deploymentconfig.Log(version, options.LogsForObject))
		util.CheckErr(options.Validate())
		util.CheckErr(options.RunLogsContext(command.Context()))
	}
	return command
}

// newBuildLogs makes `oc build-logs`, which OpenShift 3 had before `oc logs` knew builds.
func newBuildLogs(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
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
	command.Flags().BoolVarP(&follow, "follow", "f", follow, "Show what is logged until the build ends")
	command.Flags().BoolVarP(&noWait, "nowait", "w", noWait, "Show what is there, and wait for nothing")
	return command
}
