package volumeplugin

import (
	"fmt"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Metrics contains metrics about driver calls, which the process's /metrics endpoint serves. The
// API server's metrics include operations such as attach, detach and expandvolume. The kubelet's
// metrics include operations on the node.
type Metrics struct {
	seconds     *metrics.HistogramVec
	errors      *metrics.CounterVec
	inFlight    *metrics.GaugeVec
	scans       *metrics.CounterVec
	scanSeconds *metrics.Histogram
}

var _ flexvolume.Observer = (*Metrics)(nil)

// NewMetrics creates and registers the metrics. A process must call it only once.
func NewMetrics() (*Metrics, error) {
	const prefix = "slipway_flexvolume_"
	m := &Metrics{
		seconds: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name: prefix + "operation_seconds", Help: "Duration of FlexVolume driver calls, including the wait for the volume and a slot.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800},
		}, []string{"driver", "operation", "status"}),
		errors: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: prefix + "operation_errors_total", Help: "Failed FlexVolume driver calls, by kind of failure.",
		}, []string{"driver", "operation", "kind"}),
		inFlight: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name: prefix + "operations_in_flight", Help: "FlexVolume driver calls that run or wait for the volume or a slot.",
		}, []string{"driver", "operation"}),
		scans: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: prefix + "scans_total", Help: "Scans of the FlexVolume plugin directory.",
		}, []string{"status"}),
		scanSeconds: metrics.NewHistogram(&metrics.HistogramOpts{
			Name: prefix + "scan_seconds", Help: "Duration of scans of the FlexVolume plugin directory.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}),
	}
	for _, metric := range []metrics.Registerable{m.seconds, m.errors, m.inFlight, m.scans, m.scanSeconds} {
		if err := legacyregistry.Register(metric); err != nil {
			return nil, fmt.Errorf("register FlexVolume metrics: %w", err)
		}
	}
	return m, nil
}

const (
	statusSuccess = "success"
	statusError   = "error"
)

// CallBegins counts a call as in flight.
func (m *Metrics) CallBegins(driver string, op flexvolume.Operation) {
	m.inFlight.WithLabelValues(driver, string(op)).Inc()
}

// CallEnds records a call's result.
func (m *Metrics) CallEnds(call flexvolume.Call) {
	op := string(call.Operation)
	m.inFlight.WithLabelValues(call.Driver, op).Dec()
	status := statusSuccess
	if call.Kind != "" {
		status = statusError
		m.errors.WithLabelValues(call.Driver, op, string(call.Kind)).Inc()
	}
	m.seconds.WithLabelValues(call.Driver, op, status).Observe(call.Duration.Seconds())
}

// ScanEnds records a scan's result.
func (m *Metrics) ScanEnds(scan flexvolume.Scan) {
	status := statusSuccess
	if scan.Err != nil {
		status = statusError
	}
	m.scans.WithLabelValues(status).Inc()
	m.scanSeconds.Observe(scan.Duration.Seconds())
}
