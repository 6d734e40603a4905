// Package migrate makes `oc adm migrate`, which changes many objects of a cluster at once: it has
// them stored anew, or changes what they name where that has moved.
//
// Source: the client of OpenShift Container Platform 3.11, whose flags and output these are.
package migrate

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns `oc adm migrate`.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "migrate", Short: "Migrate data in the cluster", Long: "Change many objects at once: store them anew, or follow what they name when it has moved.",
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newReferences(factory, streams), newStorage(factory, streams), newAutoscalers(factory, streams))
	return command
}
