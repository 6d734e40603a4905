package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/kube"
)

func versionCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of Slipway and of the Kubernetes that it contains",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			switch output {
			case "json":
				return json.NewEncoder(out).Encode(map[string]string{"slipway": version.Slipway(), "kubernetes": kube.Version()})
			case "":
				_, err := fmt.Fprintf(out, "Slipway %s\nKubernetes %s\n", version.Slipway(), kube.Version())
				return err
			}
			return fmt.Errorf("unknown output format %q; use json, or omit -o", output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}
