// Package adm implements `oc adm`, the commands for cluster administrators.
package adm

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/certificates"
	"k8s.io/kubectl/pkg/cmd/completion"
	kubectlconfig "k8s.io/kubectl/pkg/cmd/config"
	"k8s.io/kubectl/pkg/cmd/drain"
	"k8s.io/kubectl/pkg/cmd/options"
	"k8s.io/kubectl/pkg/cmd/taint"
	"k8s.io/kubectl/pkg/cmd/top"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/certs"
	"github.com/slipway-platform/slipway/cli/diagnostics"
	"github.com/slipway-platform/slipway/cli/group"
	"github.com/slipway-platform/slipway/cli/image"
	"github.com/slipway-platform/slipway/cli/image/signature"
	"github.com/slipway-platform/slipway/cli/migrate"
	"github.com/slipway-platform/slipway/cli/policy"
	"github.com/slipway-platform/slipway/cli/project"
	"github.com/slipway-platform/slipway/cli/registry"
)

// New returns the `oc adm` command. As in OpenShift 3, kubectl's commands for nodes are also
// available at the top level of oc.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	adm := &cobra.Command{
		Use:   "adm",
		Short: "Tools for managing a cluster",
		Long:  "Commands that need permissions in the whole cluster.",
		Run:   util.DefaultSubCommandRun(streams.ErrOut),
	}
	usage := top.NewCmdTop(factory, genericiooptions.IOStreams{In: streams.In, Out: oldUsage{streams.Out}, ErrOut: streams.ErrOut})
	usage.AddCommand(image.NewTop(factory, streams)...)
	adm.AddCommand(
		newManageNode(factory, streams),
		group.New(factory, streams),
		newPrune(factory, streams),
		build.NewChain(factory, streams),
		signature.New(factory, streams),
		migrate.New(factory, streams),
		project.NewAdm(factory, streams),
		registry.NewAdm(factory, streams),
		policy.New(factory, streams, true),
		newAdmRouter(factory, streams), newAdmFailover(factory, streams), newPodNetwork(factory, streams),
		diagnostics.New(factory, streams),
		drain.NewCmdCordon(factory, streams),
		drain.NewCmdUncordon(factory, streams),
		withOldNames(drain.NewCmdDrain(factory, streams), map[string]string{"delete-local-data": "delete-emptydir-data"}),
		taint.NewCmdTaint(factory, streams),
		usage,
		kubectlconfig.NewCmdConfig(factory, clientcmd.NewDefaultPathOptions(), streams),
		completion.NewCmdCompletion(streams.Out, ""),
		certificates.NewCmdCertificate(factory, streams),
		options.NewCmdOptions(streams.Out),
		certs.New(streams), certs.NewClientConfig(streams), certs.NewKubeconfig(), certs.NewNodeConfig(streams),
	)
	adm.AddCommand(certs.NewCreators(streams)...)
	adm.AddCommand(newBootstrapFiles(streams)...)
	return adm
}

// withOldNames makes a command accept flags under their OpenShift 3 names in addition to their
// current names. names maps each old name to its current name. The command's help omits the old
// names.
func withOldNames(command *cobra.Command, names map[string]string) *cobra.Command {
	for old, current := range names {
		flag := *command.Flags().Lookup(current)
		flag.Name, flag.Hidden = old, true
		command.Flags().AddFlag(&flag)
	}
	return command
}
