// Package migrate contains `oc adm migrate`, which changes many objects of a cluster: it stores
// them again, or updates references in them.
//
// Source: the client of OpenShift Container Platform 3.11 for flags and output.
package migrate

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns `oc adm migrate`.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "migrate", Short: "Migrate data in the cluster", Long: "Change many objects: store them again, or update their references.",
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newReferences(factory, streams), newStorage(factory, streams), newAutoscalers(factory, streams))
	return command
}
