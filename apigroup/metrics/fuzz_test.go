package metrics

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/metrics-server/pkg/storage"
)

// FuzzParse verifies that a kubelet's response never sets another node's usage.
func FuzzParse(f *testing.F) {
	f.Add("node_cpu_usage_seconds_total 1 1000\nnode_memory_working_set_bytes 5 1000\n")
	f.Add("container_cpu_usage_seconds_total{container=\"c\",namespace=\"n\",pod=\"p\"} NaN 1000\ncontainer_memory_working_set_bytes{container=\"c\",namespace=\"n\",pod=\"p\"} -1 1000\n")
	f.Add("# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\n")
	f.Fuzz(func(t *testing.T, reading string) {
		batch := &storage.MetricsBatch{Nodes: map[string]storage.MetricsPoint{}, Pods: map[types.NamespacedName]storage.PodMetricsPoint{}}
		_ = parse(strings.NewReader(reading), "own", batch)
		for name := range batch.Nodes {
			if name != "own" {
				t.Errorf("%q sets the usage of node %q", reading, name)
			}
		}
		for name, pod := range batch.Pods {
			if len(pod.Containers) == 0 {
				t.Errorf("%q gives pod %v no containers", reading, name)
			}
		}
	})
}
