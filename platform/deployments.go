package platform

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/apigroup/apps/deployer"
	"github.com/slipway-platform/slipway/apigroup/apps/deployment"
	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/node/image"
)

// deployments are the controllers of DeploymentConfigs. The commands of Custom strategies find oc in their image.
func (h *host) deployments() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &deployment.Controllers{Client: client, Image: image.DeployerName, CustomImage: image.SelfName}, nil
}

// deployCommand is for the commands of Custom strategies; other deployer pods run a program of its own.
func deployCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "deploy",
		Short: "Carry out a deployment of a DeploymentConfig, in its deployer pod",
		Long: "Carry out the deployment that the environment names (" + rollout.NameVariable + ", " + rollout.NamespaceVariable + ") with\n" +
			"the rights of the pod's service account. The command of a Custom strategy can call it.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return deployer.Deploy(ctx, cmd.OutOrStdout())
		},
	}
}
