package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newGet returns `oc get`: kubectl's, which also takes the flag by which clients of OpenShift 3 ask
// for pods that have ended.
func newGet(name string, factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := get.NewCmdGet(name, factory, streams)
	flags := command.Flags()
	flags.BoolP("show-all", "a", true, "Show objects that have ended too, as is always done.")
	util.CheckErr(flags.MarkDeprecated("show-all", "what has ended is always shown"))
	return command
}
