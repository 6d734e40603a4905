package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/cmd/util"
)

// metricsGroup is the API group for the resource usage of pods and nodes. An optional metrics
// server serves it.
const metricsGroup = "metrics.k8s.io"

const installMetrics = "install metrics-server (https://github.com/kubernetes-sigs/metrics-server), which serves " + metricsGroup

// explainMissingMetrics makes commands that require metrics print a remedy if the cluster serves no
// metrics.
func explainMissingMetrics(root *cobra.Command, factory util.Factory, errOut io.Writer) {
	for _, path := range [][]string{{"top", "node"}, {"top", "pod"}, {"adm", "top", "node"}, {"adm", "top", "pod"}} {
		if command, rest, err := root.Find(path); err == nil && len(rest) == 0 {
			run := command.Run
			command.Run = func(command *cobra.Command, args []string) {
				if lacksMetrics(factory) {
					util.CheckErr(errors.New("the cluster has no metrics: " + installMetrics +
						"; without it, `oc get --raw /api/v1/nodes/NODE/proxy/stats/summary` prints the usage of a node and its pods"))
				}
				run(command, args)
			}
		}
	}
	if command, rest, err := root.Find([]string{"autoscale"}); err == nil && len(rest) == 0 {
		run := command.Run
		command.Run = func(command *cobra.Command, args []string) {
			run(command, args)
			if lacksMetrics(factory) {
				fmt.Fprintln(errOut, "Warning: the cluster has no metrics, so the autoscaler cannot scale pods: "+installMetrics)
			}
		}
	}
}

// lacksMetrics reports whether the server lacks the metrics API. It returns false if the server
// does not respond, because the command itself then reports a clearer error.
func lacksMetrics(factory util.Factory) bool {
	client, err := factory.ToDiscoveryClient()
	if err != nil {
		return false
	}
	client.Invalidate() // the metrics server might have been installed since the last command
	groups, err := client.ServerGroups()
	return err == nil && !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == metricsGroup })
}
