package command

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/apigroup/apps/deployer"
	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// deployCommand returns the command that runs a deployment in a deployer pod. The command of a
// Custom strategy can call it. Other strategies use the slipway-deployer program instead.
func deployCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "deploy",
		Short: "Run a deployment of a DeploymentConfig, in its deployer pod",
		Long: "Run the deployment that the environment variables identify (" + rollout.NameVariable + ", " + rollout.NamespaceVariable + ") with\n" +
			"the permissions of the pod's service account. The command of a Custom strategy can call it.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return deployer.Deploy(ctx, cmd.OutOrStdout())
		},
	}
}
