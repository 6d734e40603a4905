package router

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipway-platform/slipway/router/settings"
)

// metrics are those of the router itself.
type metrics struct {
	reload, write prometheus.Summary
	failure       prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		reload: prometheus.NewSummary(prometheus.SummaryOpts{Name: "template_router_reload_seconds", Help: "Seconds that reloads of HAProxy took"}),
		write:  prometheus.NewSummary(prometheus.SummaryOpts{Name: "template_router_write_config_seconds", Help: "Seconds that writing the configuration took"}),
		failure: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "template_router_reload_failure", Help: "1 when HAProxy did not take the newest configuration, and serves a former one",
		}),
	}
}

func (m *metrics) observe(written, reloaded time.Duration) {
	m.write.Observe(written.Seconds())
	m.reload.Observe(reloaded.Seconds())
	m.failed(false)
}

func (m *metrics) failed(it bool) {
	m.failure.Set(map[bool]float64{true: 1}[it])
}

// health is what is asked of a router's state.
type health interface {
	// Alive is an error when HAProxy does not answer.
	Alive() error
	// Stats is HAProxy's statistics as CSV, and an error when it does not answer.
	Stats() (string, error)
	// Page is the socket of HAProxy's page of statistics.
	Page() string
}

// serve answers health, metrics and statistics until ctx ends. unready says why the
// router is not to be sent requests; nothing when it is.
func serve(ctx context.Context, address string, who access, engine health, m *metrics, unready func() string) error {
	s := who.settings
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on ROUTER_LISTEN_ADDR: %w", err)
	}
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) {
		if err := engine.Alive(); err != nil {
			http.Error(w, "HAProxy does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /healthz/ready", func(w http.ResponseWriter, r *http.Request) {
		if reason := unready(); reason != "" {
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
		alive(w, r)
	})
	if s.Text("ROUTER_METRICS_TYPE") == "haproxy" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(m.reload, m.write, m.failure, newCollector(s, engine.Stats))
		mux.Handle("GET /metrics", who.guardMetrics(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	}
	page := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "haproxy"}) },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", engine.Page())
		}},
	}
	mux.Handle("/", who.guard(page))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve statistics: %w", err)
	}
	return nil
}

// column is one of HAProxy's statistics as a metric: its number in the CSV, its name, and the rows that have it: F frontends, b backends whose servers are not
// told, B backends whose servers are, S servers.
type column struct {
	index            int
	name, rows, help string
}

// columns are the table of the section on HAProxy's metrics.
var columns = []column{
	{2, "current_queue", "bBS", "Requests that wait"}, {4, "current_sessions", "FbS", "Sessions"}, {5, "max_sessions", "FbS", "Most sessions so far"},
	{7, "connections_total", "FbBS", "Connections"}, {8, "bytes_in_total", "FbS", "Bytes of requests"}, {9, "bytes_out_total", "FbS", "Bytes of responses"},
	{13, "connection_errors_total", "bS", "Connections that failed"}, {14, "response_errors_total", "bS", "Responses that failed"},
	{17, "up", "bBS", "1 for those that are up"}, {21, "check_failures_total", "S", "Checks that failed"}, {24, "downtime_seconds_total", "S", "Seconds of being down"},
	{33, "current_session_rate", "FbS", "Sessions in the last second"}, {35, "max_session_rate", "FbS", "Most sessions in a second so far"},
	{40, "http_responses_total", "FbS", "Responses by code"}, {43, "http_responses_total", "FbS", "Responses by code"},
	{60, "http_average_response_latency_milliseconds", "bS", "Milliseconds of the last 1024 requests"},
}

// collector makes metrics of HAProxy's statistics.
type collector struct {
	settings settings.Settings
	stats    func() (string, error)

	mu    sync.Mutex
	rows  [][]string
	asked time.Time
}

func newCollector(s settings.Settings, stats func() (string, error)) *collector {
	return &collector{settings: s, stats: stats}
}

// Describe says nothing: which metrics there are follows from what HAProxy serves.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// Collect gives the statistics, which are as old as ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL at most.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	up := 1.0
	rows, err := c.current()
	if err != nil {
		slog.Warn("ask HAProxy for its statistics", "error", err)
		up = 0
	}
	threshold := c.settings.Number("ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD")
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc("haproxy_exporter_up", "1 when HAProxy tells its statistics", nil, nil), prometheus.GaugeValue, up)
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc("haproxy_exporter_server_threshold", "Servers above which backends are told", nil, nil), prometheus.GaugeValue, float64(threshold))
	servers := 0
	for _, row := range rows {
		if kindOf(row) == "S" {
			servers++
		}
	}
	selected := c.settings.List("ROUTER_METRICS_HAPROXY_EXPORTED")
	for _, row := range rows {
		kind := kindOf(row)
		if kind == "S" && servers > threshold {
			continue
		}
		if kind == "b" && servers <= threshold {
			kind = "B"
		}
		for _, column := range columns {
			if strings.Contains(column.rows, kind) && slices.Contains(selected, strconv.Itoa(column.index)) {
				c.tell(out, column, kind, row)
			}
		}
	}
}

// current are the rows of the statistics.
func (c *collector) current() ([][]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.asked) < c.settings.Duration("ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL") {
		return c.rows, nil
	}
	text, err := c.stats()
	if err != nil {
		return nil, err
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read statistics: %w", err)
	}
	c.rows = slices.DeleteFunc(rows, func(row []string) bool { return len(row) < 61 || strings.HasPrefix(row[0], "#") })
	c.asked = time.Now()
	return c.rows, nil
}

// kindOf is what a row is about: F, b or S.
func kindOf(row []string) string {
	switch row[1] {
	case "FRONTEND":
		return "F"
	case "BACKEND":
		return "b"
	}
	return "S"
}

// tell gives one value of a row.
func (c *collector) tell(out chan<- prometheus.Metric, column column, kind string, row []string) {
	value, err := strconv.ParseFloat(row[column.index], 64)
	if column.index == 17 {
		value, err = 0, nil
		if strings.HasPrefix(row[17], "UP") || strings.HasPrefix(row[17], "no check") || row[17] == "OPEN" {
			value = 1
		}
	}
	if err != nil {
		return // this row has none
	}
	labels, values := []string{"frontend"}, []string{row[0]}
	of := "frontend"
	if kind != "F" {
		of = "backend"
		labels, values = []string{"backend", "namespace", "route"}, append([]string{row[0]}, routeOf(row[0])...)
	}
	if kind == "S" {
		of = "server"
		labels, values = append(labels, "server", "pod", "service"), append(append(values, row[1]), podOf(row[1])...)
	}
	if column.name == "http_responses_total" {
		labels, values = append(labels, "code"), append(values, map[int]string{40: "2xx", 43: "5xx"}[column.index])
	}
	kindOfValue := prometheus.GaugeValue
	if strings.HasSuffix(column.name, "_total") {
		kindOfValue = prometheus.CounterValue
	}
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc("haproxy_"+of+"_"+column.name, column.help, labels, nil), kindOfValue, value, values...)
}

// routeOf are namespace and name of a backend's route.
func routeOf(backend string) []string {
	parts := strings.Split(backend, ":")
	if len(parts) != 3 {
		return []string{"", ""}
	}
	return parts[1:]
}

// podOf are pod and service of a server.
func podOf(server string) []string {
	parts := strings.Split(server, ":")
	if len(parts) < 3 {
		return []string{"", ""}
	}
	return parts[1:3]
}
