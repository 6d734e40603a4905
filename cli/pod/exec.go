package pod

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewExec returns `oc exec`: kubectl's command, which as in OpenShift 3 also accepts a command that
// does not follow --.
func NewExec(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlexec.NewCmdExec(factory, streams)
	command.PreRun = func(command *cobra.Command, args []string) {
		if flags := command.Flags(); flags.ArgsLenAtDash() < 0 && len(args) > 1 && !flags.Changed("filename") {
			util.CheckErr(flags.Parse(append([]string{args[0], "--"}, args[1:]...)))
		}
	}
	return command
}
