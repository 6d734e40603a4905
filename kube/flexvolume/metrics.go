package flexvolume

import (
	"fmt"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

// Metrics shows what drivers do in the registry that the process's /metrics shows: the API server's, for attach, detach, expandvolume
// and the like, and kubelet's, for what is done on the node.
type Metrics struct {
	seconds  *metrics.HistogramVec
	errors   *metrics.CounterVec
	inFlight *metrics.GaugeVec
	scans    *metrics.CounterVec
	scanning *metrics.Histogram
}

var _ engine.Observer = (*Metrics)(nil)

// NewMetrics registers the metrics, which a process may do once.
func NewMetrics() (*Metrics, error) {
	const prefix = "slipway_flexvolume_"
	m := &Metrics{
		seconds: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Name: prefix + "operation_seconds", Help: "How long calls of FlexVolume drivers took, waiting for their turn included.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800},
		}, []string{"driver", "operation", "status"}),
		errors: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: prefix + "operation_errors_total", Help: "Calls of FlexVolume drivers that failed, by what went wrong.",
		}, []string{"driver", "operation", "kind"}),
		inFlight: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Name: prefix + "operations_in_flight", Help: "Calls of FlexVolume drivers that run or wait for their turn.",
		}, []string{"driver", "operation"}),
		scans: metrics.NewCounterVec(&metrics.CounterOpts{
			Name: prefix + "scans_total", Help: "Scans of the FlexVolume plug-in directory.",
		}, []string{"status"}),
		scanning: metrics.NewHistogram(&metrics.HistogramOpts{
			Name: prefix + "scan_seconds", Help: "How long scans of the FlexVolume plug-in directory took.",
			Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
		}),
	}
	for _, metric := range []metrics.Registerable{m.seconds, m.errors, m.inFlight, m.scans, m.scanning} {
		if err := legacyregistry.Register(metric); err != nil {
			return nil, fmt.Errorf("register metrics of FlexVolume: %w", err)
		}
	}
	return m, nil
}

const (
	succeeded = "success"
	failed    = "error"
)

// CallBegins counts a call as in flight.
func (m *Metrics) CallBegins(driver string, op engine.Operation) {
	m.inFlight.WithLabelValues(driver, string(op)).Inc()
}

// CallEnds counts what became of a call.
func (m *Metrics) CallEnds(call engine.Call) {
	op := string(call.Operation)
	m.inFlight.WithLabelValues(call.Driver, op).Dec()
	status := succeeded
	if call.Kind != "" {
		status = failed
		m.errors.WithLabelValues(call.Driver, op, string(call.Kind)).Inc()
	}
	m.seconds.WithLabelValues(call.Driver, op, status).Observe(call.Duration.Seconds())
}

// ScanEnds counts a scan.
func (m *Metrics) ScanEnds(scan engine.Scan) {
	status := succeeded
	if scan.Err != nil {
		status = failed
	}
	m.scans.WithLabelValues(status).Inc()
	m.scanning.Observe(scan.Duration.Seconds())
}
