package metrics

import (
	"fmt"
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/metrics-server/pkg/storage"
)

// parse adds the usage of a node and its containers to batch. reading is the response of the
// kubelet's /metrics/resource endpoint. parse skips points that lack the CPU or the memory usage.
func parse(reading io.Reader, node string, batch *storage.MetricsBatch) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(reading)
	if err != nil {
		return fmt.Errorf("parse kubelet metrics: %w", err)
	}
	nodePoint := storage.MetricsPoint{}
	each(families["node_cpu_usage_seconds_total"], func(m *dto.Metric, value float64) { setCPU(&nodePoint, m, value) })
	each(families["node_memory_working_set_bytes"], func(_ *dto.Metric, value float64) { nodePoint.MemoryUsage = uint64(value) })
	if complete(nodePoint) {
		batch.Nodes[node] = nodePoint
	}
	type key struct {
		pod       types.NamespacedName
		container string
	}
	points := map[key]*storage.MetricsPoint{}
	point := func(m *dto.Metric) *storage.MetricsPoint {
		labels := map[string]string{}
		for _, label := range m.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		k := key{types.NamespacedName{Namespace: labels["namespace"], Name: labels["pod"]}, labels["container"]}
		if points[k] == nil {
			points[k] = &storage.MetricsPoint{}
		}
		return points[k]
	}
	each(families["container_cpu_usage_seconds_total"], func(m *dto.Metric, value float64) { setCPU(point(m), m, value) })
	each(families["container_memory_working_set_bytes"], func(m *dto.Metric, value float64) { point(m).MemoryUsage = uint64(value) })
	each(families["container_start_time_seconds"], func(m *dto.Metric, value float64) {
		point(m).StartTime = time.Unix(0, int64(value*float64(time.Second)))
	})
	for k, p := range points {
		if !complete(*p) {
			continue
		}
		pod := batch.Pods[k.pod]
		if pod.Containers == nil {
			pod.Containers = map[string]storage.MetricsPoint{}
		}
		pod.Containers[k.container] = *p
		batch.Pods[k.pod] = pod
	}
	return nil
}

// each calls visit with each sample of a family, which can be nil.
func each(family *dto.MetricFamily, visit func(m *dto.Metric, value float64)) {
	for _, m := range family.GetMetric() {
		switch {
		case m.Counter != nil:
			visit(m, m.Counter.GetValue())
		case m.Gauge != nil:
			visit(m, m.Gauge.GetValue())
		case m.Untyped != nil:
			visit(m, m.Untyped.GetValue())
		}
	}
}

// setCPU sets the point's cumulative CPU time, in nanoseconds, and the time of the reading.
func setCPU(point *storage.MetricsPoint, m *dto.Metric, seconds float64) {
	point.CumulativeCPUUsed = uint64(seconds * float64(time.Second))
	point.Timestamp = time.UnixMilli(m.GetTimestampMs())
}

func complete(point storage.MetricsPoint) bool {
	return !point.Timestamp.IsZero() && point.Timestamp.UnixMilli() != 0 && point.MemoryUsage != 0
}
