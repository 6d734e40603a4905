package volumeplugin

import (
	"bytes"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Latency summarizes the calls for one driver operation.
type Latency struct {
	Calls       uint64  `json:"calls"`
	Errors      uint64  `json:"errors"`
	MeanSeconds float64 `json:"meanSeconds"`

	total float64 // seconds
}

// Latencies maps each driver and operation to its Latency.
type Latencies map[string]map[string]Latency

// operationMetric is the name of the call duration histogram.
const operationMetric = "slipway_flexvolume_operation_seconds"

// Add adds the calls from a /metrics response. It ignores invalid text.
func (l Latencies) Add(text []byte) {
	// Select the relevant lines, because an API server's response has tens of thousands of other
	// lines.
	var lines bytes.Buffer
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(operationMetric)) || bytes.HasPrefix(line, []byte("# TYPE "+operationMetric+" ")) {
			lines.Write(line)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&lines)
	if err != nil {
		return
	}
	for _, metric := range families[operationMetric].GetMetric() {
		l.add(metric)
	}
}

func (l Latencies) add(metric *dto.Metric) {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	driver, operation := labels["driver"], labels["operation"]
	if l[driver] == nil {
		l[driver] = map[string]Latency{}
	}
	sum, calls := metric.GetHistogram().GetSampleSum(), metric.GetHistogram().GetSampleCount()
	latency := l[driver][operation]
	latency.Calls += calls
	latency.total += sum
	if labels["status"] != "success" {
		latency.Errors += calls
	}
	if latency.Calls > 0 {
		latency.MeanSeconds = latency.total / float64(latency.Calls)
	}
	l[driver][operation] = latency
}
