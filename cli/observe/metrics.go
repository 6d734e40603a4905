package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// metrics contains the metrics of `oc observe`, which have the same names as in OpenShift 3.11.
type metrics struct {
	registry         *prometheus.Registry
	observed         *prometheus.CounterVec
	durations, names *prometheus.SummaryVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		observed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "observe_counts", Help: "Number of changes observed to the underlying resource."}, []string{"type"}),
		durations: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "observe_exec_durations_milliseconds", Help: "Item execution latency distributions.",
		}, []string{"type", "exit_code"}),
		names: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "observe_name_exec_durations_milliseconds", Help: "Name list execution latency distributions.",
		}, []string{"exit_code"}),
	}
	m.registry.MustRegister(m.collectors()...)
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.observed, m.durations, m.names}
}

// Collectors returns the metrics of `oc observe`, which the documentation lists.
func Collectors() []prometheus.Collector { return newMetrics().collectors() }

func (m *metrics) executed(kind string, duration time.Duration, code int) {
	m.durations.WithLabelValues(kind, strconv.Itoa(code)).Observe(float64(duration.Milliseconds()))
}

func (m *metrics) listed(duration time.Duration, code int) {
	m.names.WithLabelValues(strconv.Itoa(code)).Observe(float64(duration.Milliseconds()))
}

// listen opens a listener and returns a function that serves metrics and health checks until its
// context is done. The health check succeeds once ready is closed.
func (m *metrics) listen(address string, ready <-chan struct{}) (serve func(context.Context) error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics (set another --listen-addr, or an empty one): %w", err)
	}
	paths := http.NewServeMux()
	paths.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	paths.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-ready:
			fmt.Fprintln(w, "ok")
		default:
			http.Error(w, "waiting for initial sync", http.StatusInternalServerError)
		}
	})
	server := &http.Server{Handler: paths, ReadHeaderTimeout: 10 * time.Second}
	return func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve metrics: %w", err)
		}
		return nil
	}, nil
}

// print writes the metrics in the Prometheus text format.
func (m *metrics) print(out io.Writer) error {
	families, err := m.registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(out, family); err != nil {
			return fmt.Errorf("print metrics: %w", err)
		}
	}
	return nil
}
