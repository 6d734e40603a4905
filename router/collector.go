package router

import (
	"encoding/csv"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-platform/slipway/router/environment"
)

// column maps one of HAProxy's statistics to a metric. index is the column in the CSV output. rows
// lists the kinds of rows that have the metric: F for frontends, S for servers, and b or B for
// backends. The servers of a b backend have no metrics, and the servers of a B backend have
// metrics.
type column struct {
	index            int
	name, rows, help string
}

// columns lists the exported metrics. Source: the table in the documentation's section on HAProxy
// metrics.
var columns = []column{
	{2, "current_queue", "bBS", "Queued requests"}, {4, "current_sessions", "FbS", "Sessions"}, {5, "max_sessions", "FbS", "Maximum number of sessions"},
	{7, "connections_total", "FbBS", "Connections"}, {8, "bytes_in_total", "FbS", "Bytes of requests"}, {9, "bytes_out_total", "FbS", "Bytes of responses"},
	{13, "connection_errors_total", "bS", "Failed connections"}, {14, "response_errors_total", "bS", "Failed responses"},
	{17, "up", "bBS", "1 if up, otherwise 0"}, {21, "check_failures_total", "S", "Failed health checks"}, {24, "downtime_seconds_total", "S", "Seconds of downtime"},
	{33, "current_session_rate", "FbS", "Sessions in the last second"}, {35, "max_session_rate", "FbS", "Maximum number of sessions in a second"},
	{40, "http_responses_total", "FbS", "Responses by code"}, {43, "http_responses_total", "FbS", "Responses by code"},
	{60, "http_average_response_latency_milliseconds", "bS", "Average response latency of the last 1024 requests in milliseconds"},
}

// collector exports HAProxy's statistics as metrics.
type collector struct {
	settings environment.Settings
	stats    func() (string, error)

	mu          sync.Mutex
	rows        [][]string
	lastRequest time.Time
	count       int // number of requests to HAProxy
	wrong       int // number of rows that cannot be parsed
}

func newCollector(s environment.Settings, stats func() (string, error)) *collector {
	return &collector{settings: s, stats: stats}
}

// Describe sends the descriptors of all metrics, including metrics of objects that do not exist.
func (*collector) Describe(out chan<- *prometheus.Desc) {
	for _, name := range slices.Sorted(maps.Keys(exporterHelp)) {
		out <- exporterDesc(name)
	}
	for _, column := range columns {
		for _, kind := range column.rows {
			out <- column.desc(string(kind))
		}
	}
}

// exporterHelp contains the help texts for metrics about reading HAProxy's statistics.
var exporterHelp = map[string]string{
	"up":                 "1 if HAProxy returns its statistics",
	"server_threshold":   "Number of servers above which only backends have metrics",
	"scrape_interval":    "Seconds for which statistics are cached",
	"total_scrapes":      "Requests to HAProxy for statistics",
	"csv_parse_failures": "Rows of statistics that could not be parsed",
}

func exporterDesc(name string) *prometheus.Desc {
	return prometheus.NewDesc("haproxy_exporter_"+name, exporterHelp[name], nil, nil)
}

// Collect sends the statistics. They are at most as old as
// ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	up := 1.0
	rows, count, wrong, err := c.current()
	if err != nil {
		slog.Warn("cannot read HAProxy statistics", "error", err)
		up = 0
	}
	threshold := c.settings.Number("ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD")
	export := func(name string, kind prometheus.ValueType, value float64) {
		out <- prometheus.MustNewConstMetric(exporterDesc(name), kind, value)
	}
	export("up", prometheus.GaugeValue, up)
	export("server_threshold", prometheus.GaugeValue, float64(threshold))
	export("scrape_interval", prometheus.GaugeValue, c.settings.Duration("ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL").Seconds())
	export("total_scrapes", prometheus.CounterValue, float64(count))
	export("csv_parse_failures", prometheus.CounterValue, float64(wrong))
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
				c.export(out, column, kind, row)
			}
		}
	}
}

// current returns the statistics rows, the number of requests sent to HAProxy, and the number of
// rows that could not be parsed.
func (c *collector) current() (rows [][]string, count, wrong int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.lastRequest) < c.settings.Duration("ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL") {
		return c.rows, c.count, c.wrong, nil
	}
	c.count++
	text, err := c.stats()
	if err != nil {
		return nil, c.count, c.wrong, err
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = -1
	c.rows, c.lastRequest = nil, time.Now()
	for {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return c.rows, c.count, c.wrong, nil
		}
		switch {
		case err == nil && strings.HasPrefix(row[0], "#"):
		case err != nil || len(row) < 61:
			c.wrong++
		default:
			c.rows = append(c.rows, row)
		}
	}
}

// kindOf returns the kind of a row: F, b or S.
func kindOf(row []string) string {
	switch row[1] {
	case "FRONTEND":
		return "F"
	case "BACKEND":
		return "b"
	}
	return "S"
}

// export sends one value of a row as a metric.
func (c *collector) export(out chan<- prometheus.Metric, column column, kind string, row []string) {
	value, err := strconv.ParseFloat(row[column.index], 64)
	if column.index == 17 {
		value, err = 0, nil
		if strings.HasPrefix(row[17], "UP") || strings.HasPrefix(row[17], "no check") || row[17] == "OPEN" {
			value = 1
		}
	}
	if err != nil {
		return // the row does not have this value
	}
	values := []string{row[0]}
	if kind != "F" {
		values = append(values, routeOf(row[0])...)
	}
	if kind == "S" {
		values = append(append(values, row[1]), podOf(row[1])...)
	}
	if column.name == "http_responses_total" {
		values = append(values, map[int]string{40: "2xx", 43: "5xx"}[column.index])
	}
	valueType := prometheus.GaugeValue
	if strings.HasSuffix(column.name, "_total") {
		valueType = prometheus.CounterValue
	}
	out <- prometheus.MustNewConstMetric(column.desc(kind), valueType, value, values...)
}

// desc returns the descriptor of a column's metric for one kind of row.
func (c column) desc(kind string) *prometheus.Desc {
	object, labels := "frontend", []string{"frontend"}
	switch kind {
	case "b", "B":
		object, labels = "backend", []string{"backend", "namespace", "route"}
	case "S":
		object, labels = "server", []string{"backend", "namespace", "route", "server", "pod", "service"}
	}
	if c.name == "http_responses_total" {
		labels = append(labels, "code")
	}
	return prometheus.NewDesc("haproxy_"+object+"_"+c.name, c.help, labels, nil)
}

// routeOf returns the namespace and name of the route that a backend serves.
func routeOf(backend string) []string {
	parts := strings.Split(backend, ":")
	if len(parts) != 3 {
		return []string{"", ""}
	}
	return parts[1:]
}

// podOf returns a server's pod and service.
func podOf(server string) []string {
	parts := strings.Split(server, ":")
	if len(parts) < 3 {
		return []string{"", ""}
	}
	return parts[1:3]
}
