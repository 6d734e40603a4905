package router

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipway-platform/slipway/internal/version"
)

// metrics contains the router's own metrics.
type metrics struct {
	reload, write prometheus.Summary
	failure       prometheus.Gauge
	others        []prometheus.Collector

	requestDuration, requestTime, responseTime *prometheus.SummaryVec // about requests for metrics
}

func newMetrics() *metrics {
	build := strings.SplitN(strings.TrimPrefix(version.Slipway(), "v"), ".", 3)
	return &metrics{
		reload: prometheus.NewSummary(prometheus.SummaryOpts{Name: "template_router_reload_seconds", Help: "Duration of HAProxy reloads in seconds"}),
		write:  prometheus.NewSummary(prometheus.SummaryOpts{Name: "template_router_write_config_seconds", Help: "Duration of configuration writes in seconds"}),
		failure: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "template_router_reload_failure", Help: "1 if HAProxy rejected the newest configuration and serves an earlier one",
		}),
		requestDuration: ofRequests("http_request_duration_microseconds", "Duration of requests for metrics in microseconds"),
		requestTime:     ofRequests("http_request_size_bytes", "Bytes of requests for metrics"),
		responseTime:    ofRequests("http_response_size_bytes", "Bytes of responses to requests for metrics"),
		others: []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "openshift_build_info", Help: "1, with the version of the program",
			ConstLabels: prometheus.Labels{"major": build[0], "minor": build[min(1, len(build)-1)], "gitCommit": "", "gitVersion": version.Slipway()},
		}, func() float64 { return 1 })},
	}
}

func ofRequests(name, help string) *prometheus.SummaryVec {
	return prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"handler": "prometheus"}}, nil)
}

// watching adds a gauge that is 1 if the router cannot watch the cluster.
func (m *metrics) watching(problem func() string) {
	m.others = append(m.others, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "template_router_watch_failure", Help: "1 if the router cannot watch its objects; until the router is ready, /healthz/ready names them",
	}, func() float64 {
		if problem() != "" {
			return 1
		}
		return 0
	}))
}

// collectors returns the router's and HAProxy's metrics.
func (m *metrics) collectors(haproxy *collector) []prometheus.Collector {
	return append([]prometheus.Collector{m.reload, m.write, m.failure, m.requestDuration, m.requestTime, m.responseTime, haproxy}, m.others...)
}

// Collectors returns all metrics of a router that is not running. It is used for documentation.
func Collectors() []prometheus.Collector {
	m := newMetrics()
	m.watching(func() string { return "" })
	return m.collectors(&collector{})
}

// handler serves the router's own metrics and HAProxy's metrics.
func (m *metrics) handler(haproxy *collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.collectors(haproxy)...)
	measured := promhttp.InstrumentHandlerRequestSize(m.requestTime, promhttp.InstrumentHandlerResponseSize(m.responseTime, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		measured.ServeHTTP(w, r)
		m.requestDuration.WithLabelValues().Observe(float64(time.Since(start).Microseconds()))
	})
}

// observe records that HAProxy serves a configuration, and how long it took to write the
// configuration and to reload HAProxy.
func (m *metrics) observe(write, reload time.Duration) {
	m.write.Observe(write.Seconds())
	m.reload.Observe(reload.Seconds())
	m.failure.Set(0)
}
