package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/node"
)

// NewHyperkube returns the command line of OpenShift 3.11's `hyperkube` program, which contained
// the Kubernetes components. In Slipway, it only prints the kubelet's options, and runs kubectl by
// calling client.
//
// Source: OpenShift 3.11 Cluster Administration, 2.11.1.
func NewHyperkube(client func(name string, args []string) error) *cobra.Command {
	root := &cobra.Command{
		Use: "hyperkube", Short: "The components of Kubernetes",
		Long: "Slipway contains the components of Kubernetes, and `slipway up` starts them. This program prints the options of the kubelet.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(cmd.Help(), errors.New("specify a command, such as: kubelet --help"))
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(hyperkubeKubelet(),
		&cobra.Command{
			Use: "kubectl", Short: "Run kubectl", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return client("kubectl", args) },
		})
	return root
}

// hyperkubeKubelet returns the command that prints the kubelet's options. It does not start a
// kubelet, because the node process contains the kubelet.
func hyperkubeKubelet() *cobra.Command {
	command := &cobra.Command{
		Use: "kubelet", Short: "Print the options of the kubelet",
		Long: "The options of the kubelet, with Kubernetes' defaults. Set them in kubeletArguments of node-config.yaml, without dashes:\n\n" +
			"  kubeletArguments:\n    max-pods: [\"250\"]",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return fmt.Errorf("`slipway up` starts the kubelet; to set options, use kubeletArguments in node-config.yaml")
		},
	}
	flags, err := node.KubeletFlags()
	if err != nil {
		command.PreRunE = func(*cobra.Command, []string) error { return err }
		return command
	}
	command.Flags().AddFlagSet(flags)
	return command
}
