package platform

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/apps/deployer"
	"github.com/slipway-platform/slipway/apigroup/apps/deployment"
	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/node/image"
)

// deployments are the controllers of DeploymentConfigs. Their deployer pods run this program.
func (h *host) deployments() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &deployment.Controllers{Client: client, Image: image.SelfName, Command: []string{"/slipway", "deploy"}}, nil
}

// deployCommand is what deployer pods run.
func deployCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "deploy",
		Short: "Carry out a deployment of a DeploymentConfig, in its deployer pod",
		Long: "Carry out the deployment that the environment names (" + rollout.NameVariable + ", " + rollout.NamespaceVariable + ") with\n" +
			"the rights of the pod's service account. An image of a Custom strategy can call it too.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return deploy(ctx, cmd)
		},
	}
}

func deploy(ctx context.Context, cmd *cobra.Command) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w; this command runs in deployer pods", err)
	}
	config.QPS, config.Burst = 50, 100 // it waits for nothing else
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	d := &deployer.Deployer{
		Core: core, Tags: images, Out: cmd.OutOrStdout(),
		Namespace: os.Getenv(rollout.NamespaceVariable), Deployment: os.Getenv(rollout.NameVariable),
	}
	return d.Run(ctx)
}
