package adm

import (
	"context"
	"errors"
	"fmt"

	networkv1 "github.com/openshift/api/network/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// multitenant is the network plugin of OpenShift 3 that separates projects by network IDs.
const multitenant = "redhat/openshift-ovs-multitenant"

// newPodNetwork returns `oc adm pod-network`. As in OpenShift 3, its commands need the network
// plugin that separates projects, and otherwise report the plugin.
func newPodNetwork(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	parent := &cobra.Command{
		Use:   "pod-network",
		Short: "Manage pod network",
		Long: `Join, isolate or open the networks of projects.

The commands need OpenShift 3's network plugin ` + multitenant + `, which Slipway does not have. To separate projects, create
network policies. The commands therefore change nothing.`,
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	for _, one := range []struct{ use, short string }{
		{"join-projects --to=PROJECT PROJECT...", "Join project network"},
		{"isolate-projects PROJECT...", "Isolate project network"},
		{"make-projects-global PROJECT...", "Make project network global"},
	} {
		command := &cobra.Command{
			Use: one.use, Short: one.short, Long: one.short + ". This needs the network plugin " + multitenant + ".",
			Run: func(command *cobra.Command, args []string) {
				if selector := util.GetFlagString(command, "selector"); (len(args) == 0) == (selector == "") {
					util.CheckErr(util.UsageErrorf(command, "must provide either --selector=<project_selector> or projects"))
				}
				if command.Flags().Lookup("to") != nil && util.GetFlagString(command, "to") == "" {
					util.CheckErr(util.UsageErrorf(command, "must provide --to=<project_name>"))
				}
				client, err := factory.DynamicClient()
				util.CheckErr(err)
				util.CheckErr(checkPlugin(command.Context(), client))
			},
		}
		command.Flags().String("selector", "", "Label selector of the projects.")
		if command.Name() == "join-projects" {
			command.Flags().String("to", "", "Project whose network the others join.")
		}
		parent.AddCommand(command)
	}
	return parent
}

// checkPlugin returns an error that says why networks of projects cannot be changed.
func checkPlugin(ctx context.Context, client dynamic.Interface) error {
	network, err := objects.Get[networkv1.ClusterNetwork](ctx, client, networkv1.GroupVersion.WithResource("clusternetworks"), "", networkv1.ClusterNetworkDefault)
	switch {
	case apierrors.IsNotFound(err):
		return errors.New("managing pod network is only supported for the network plugin " + multitenant + "; this cluster has one network: to separate projects, create network policies")
	case err != nil:
		return fmt.Errorf("find the network plugin: %w", err)
	}
	return fmt.Errorf("using plugin: %q, managing pod network is only supported for the network plugin %s, which Slipway does not have", network.PluginName, multitenant)
}
