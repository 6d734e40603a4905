// Package migrate implements `oc adm migrate`, which updates many objects in a cluster. It rewrites
// stored objects, or replaces references in them. The flags and the output follow the OpenShift
// Container Platform 3.11 client.
package migrate

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns the `oc adm migrate` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "migrate", Short: "Migrate data in the cluster", Long: "Change many objects: store them again, or update their references.",
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newReferences(factory, streams), newStorage(factory, streams), newAutoscalers(factory, streams))
	return command
}
