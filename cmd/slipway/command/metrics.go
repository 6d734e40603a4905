package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/packaging/monitoring"
)

// metricsCommand returns the command that prints files for Prometheus and Grafana.
func metricsCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "metrics", Short: "Print configuration files for your own Prometheus and Grafana", GroupID: "look",
		Long: `Print configuration files for your own Prometheus and Grafana. The template prometheus-persistent deploys a Prometheus with these files.`,
	}
	command.AddCommand(
		scrapeConfigCommand(), rightsCommand(),
		printCommand("rules", "Print alert rules for Prometheus", monitoring.Rules),
		printCommand("dashboard", "Print a Grafana dashboard as JSON", monitoring.Dashboard),
	)
	return command
}

func scrapeConfigCommand() *cobra.Command {
	var files monitoring.Files
	command := &cobra.Command{
		Use: "scrape-config --server URL", Short: "Print a configuration for Prometheus", Args: cobra.NoArgs,
		Example: "  slipway metrics scrape-config --server https://master.example.com:8443 >/etc/prometheus/prometheus.yml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), monitoring.Configuration(files))
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&files.Server, "server", "", "URL of the API server")
	flags.StringVar(&files.Token, "token-file", "/etc/prometheus/token", "file with the token of the service account that slipway metrics rights prints")
	flags.StringVar(&files.Authority, "ca-file", "/etc/prometheus/ca.crt", "file with the cluster's certificate authority")
	flags.StringVar(&files.Rules, "rules", "/etc/prometheus/*.rules.yml", "files with alert rules")
	cobra.CheckErr(command.MarkFlagRequired("server"))
	return command
}

func rightsCommand() *cobra.Command {
	var namespace string
	command := &cobra.Command{
		Use: "rights", Short: "Print a service account for Prometheus, with its permissions", Args: cobra.NoArgs,
		Example: `  slipway metrics rights -n openshift-metrics | oc apply -f -
  oc serviceaccounts get-token prometheus -n openshift-metrics >/etc/prometheus/token`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus, namespace: %q}}
%s`, namespace, monitoring.Rights(namespace))
			return err
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "openshift-metrics", "project of the service account")
	return command
}

func printCommand(name, short, text string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
}
