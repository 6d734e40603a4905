package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newCluster returns the `oc cluster` command, which ran a cluster in containers in OpenShift 3.
// Each of its subcommands fails with an error that contains the corresponding Slipway command.
func newCluster() *cobra.Command {
	cluster := elsewhere("cluster", "cluster", "slipway up, slipway down or slipway status")
	for name, instead := range map[string]string{
		"up": "slipway up", "down": "slipway down", "status": "slipway status", "add": "slipway config, which prints the settings of the host",
	} {
		cluster.AddCommand(elsewhere("cluster "+name, name, instead))
	}
	return cluster
}

// newMustGather returns the `oc adm must-gather` command.
func newMustGather() *cobra.Command {
	return elsewhere("adm must-gather", "must-gather", "slipway support on each host, which saves the same kind of data")
}

// elsewhereAnnotation marks commands that only point to another command.
const elsewhereAnnotation = "slipway.openshift.io/elsewhere"

// elsewhere returns a command that always fails. The error contains the command to run instead.
func elsewhere(path, name, instead string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "See " + instead, Hidden: true, DisableFlagParsing: true,
		Annotations: map[string]string{elsewhereAnnotation: "true"},
		Run: func(*cobra.Command, []string) {
			util.CheckErr(fmt.Errorf("oc %s is not needed here: run %s", path, instead))
		},
	}
}
