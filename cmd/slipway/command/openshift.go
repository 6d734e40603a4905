package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	etcd "go.etcd.io/etcd/api/v3/version"

	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/kube"
)

// NewOpenShift returns the command line of OpenShift 3's `openshift` program. Its verbs run slipway
// and oc verbs. client runs the client with the given name, such as oc.
func NewOpenShift(client func(name string, args []string) error) *cobra.Command {
	root := &cobra.Command{
		Use: "openshift", Short: "Run the commands of OpenShift 3's program `openshift`",
		Long: "OpenShift Application Platform\n\nThe commands of OpenShift 3's program, as aliases for commands of slipway and oc.",
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(cmd.Help(), errors.New("specify a command, such as start"))
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(startCommand(), openShiftVersion(), openShiftCompletion(root),
		&cobra.Command{
			Use: "cli", Short: "Run oc", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return client("oc", args) },
		},
		&cobra.Command{
			Use: "admin", Aliases: []string{"adm"}, Short: "Run oc adm", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return client("oc", append([]string{"adm"}, args...)) },
		})
	return root
}

// openShiftVersion returns `openshift version`, which prints the lines of OpenShift 3.11 and a line
// about Slipway.
func openShiftVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of OpenShift, Kubernetes and etcd", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "openshift %s\nkubernetes %s\netcd %s\nslipway %s\n",
				version.OpenShift(), kube.Version(), etcd.Version, version.Slipway())
			return err
		},
	}
}

// openShiftCompletion returns `openshift completion`. Its error messages correspond to the messages
// of `oc completion`.
func openShiftCompletion(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print the shell code for command completion: bash or zsh",
		Long:      "This command prints shell code. A shell that evaluates it completes the commands and flags of openshift.",
		Example:   "  source <(openshift completion bash)",
		ValidArgs: []string{"bash", "zsh"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch out := cmd.OutOrStdout(); strings.Join(args, " ") {
			case "":
				return errors.New("Shell not specified. Use bash or zsh")
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			}
			return fmt.Errorf("Unsupported shell type %q. Use bash or zsh", strings.Join(args, " "))
		},
	}
}
