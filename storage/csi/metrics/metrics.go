// Package metrics provides metrics for CSI drivers and for their controllers' queues. It uses the
// community's metric names.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

// Metrics collects csi_operations_seconds by driver, method and gRPC code, and the workqueue_*
// metrics of all controllers by driver.
type Metrics struct {
	operations *prometheus.HistogramVec
	queues     queues
}

var _ prometheus.Collector = (*Metrics)(nil)

// New creates the metrics. The caller must register them to expose them.
func New() *Metrics {
	return &Metrics{
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "csi_operations_seconds", Help: "Duration of calls of CSI drivers, by gRPC status code.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
		}, []string{"driver_name", "method_name", "grpc_status_code"}),
		queues: newQueues(),
	}
}

// Observe records a call.
func (m *Metrics) Observe(call driver.Call) {
	m.operations.WithLabelValues(call.Driver, call.Method, call.Code.String()).Observe(call.Duration.Seconds())
}

// Queues returns the metrics provider for the queues of one driver's controllers.
func (m *Metrics) Queues(driverName string) workqueue.MetricsProvider {
	return &provider{queues: m.queues, driver: driverName}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, collector := range m.collectors() {
		collector.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(values chan<- prometheus.Metric) {
	for _, collector := range m.collectors() {
		collector.Collect(values)
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	q := m.queues
	return []prometheus.Collector{m.operations, q.depth, q.adds, q.retries, q.latency, q.work, q.unfinished, q.longest}
}
