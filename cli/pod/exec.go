package pod

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewExec returns the `oc exec` command. As in OpenShift 3, the command to execute does not have to
// follow --, and a flag can specify the pod. kubectl's command allows neither.
func NewExec(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlexec.NewCmdExec(factory, streams)
	flags := command.Flags()
	pod := flags.StringP("pod", "p", "", "Name of the pod.")
	util.CheckErr(flags.MarkDeprecated("pod", "specify the pod as the first argument"))
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		if *pod != "" {
			args = append([]string{*pod}, args...)
		}
		if *pod != "" || flags.ArgsLenAtDash() < 0 && len(args) > 1 && !flags.Changed("filename") {
			util.CheckErr(flags.Parse(append([]string{args[0], "--"}, args[1:]...)))
		}
		run(command, args)
	}
	return command
}
