package pod

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/deploymentconfig"
)

// NewLogs returns the `oc logs` command. It extends kubectl's command with support for deployment
// configs and builds.
func NewLogs(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command, options, version := logs.NewCmdLogs(factory, streams), logs.NewLogsOptions(streams), int64(0)
	command.ResetFlags() // options.AddFlags adds the flags again
	options.AddFlags(command)
	command.Flags().Int64Var(&version, "version", 0, "Number of the deployment of a deployment config, or of the build of a build config. The default is the latest.")
	command.Run = func(command *cobra.Command, args []string) {
		util.CheckErr(options.Complete(factory, command, args))
		options.LogsForObject = build.Log(version, streams.ErrOut, deploymentconfig.Log(version, options.LogsForObject))
		util.CheckErr(options.Validate())
		util.CheckErr(options.RunLogsContext(command.Context()))
	}
	return command
}
