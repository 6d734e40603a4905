package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/export"
)

// newGet returns the `oc get` command. It extends kubectl's command with two OpenShift 3 flags:
// --show-all, which has no effect, and --export.
func newGet(name string, factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := get.NewCmdGet(name, factory, streams)
	flags := command.Flags()
	flags.BoolP("show-all", "a", true, "Accepted for OpenShift 3: objects that have ended are always listed.")
	util.CheckErr(flags.MarkDeprecated("show-all", "objects that have ended are always listed"))
	flags.Bool("export", false, "With -o, print objects without the fields that belong to the cluster.")
	util.CheckErr(flags.MarkDeprecated("export", "use oc export"))
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		if exported, _ := flags.GetBool("export"); exported && (flags.Changed("output") || flags.Changed("template")) {
			util.CheckErr(export.Get(factory, streams, command, args))
			return
		}
		if severalTypes(args) && !flags.Changed("show-kind") {
			util.CheckErr(flags.Set("show-kind", "true"))
		}
		run(command, args)
	}
	return command
}

// severalTypes reports whether the arguments contain more than one resource type, such as "svc,pod"
// or "svc/a pod/a". In this case, as in OpenShift 3, the printed names include the type, even if
// all objects have the same type.
func severalTypes(args []string) bool {
	types := map[string]bool{}
	for i, arg := range args {
		kind, _, isName := strings.Cut(arg, "/")
		switch {
		case isName:
			types[kind] = true
		case i == 0:
			for kind := range strings.SplitSeq(arg, ",") {
				types[kind] = true
			}
		}
	}
	return len(types) > 1 || types["all"]
}
