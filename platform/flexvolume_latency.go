package platform

import (
	"bytes"
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// latencySummary is what the metrics of a running host say about one operation of a driver, since the start of its processes.
type latencySummary struct {
	Calls       uint64  `json:"calls"`
	Errors      uint64  `json:"errors"`
	MeanSeconds float64 `json:"meanSeconds"`

	total float64 // seconds
}

// operationMetric is the histogram of kube/flexvolume by driver, operation and status.
const operationMetric = "slipway_flexvolume_operation_seconds"

// driverLatencies asks the API server and kubelet of this host, which call drivers, for their metrics: by driver, by operation.
// It is empty where they do not run.
func (h *host) driverLatencies(ctx context.Context) map[string]map[string]latencySummary {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	config, err := kubeconfig(h.adminKubeconfig())
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	found := map[string]map[string]latencySummary{}
	for _, path := range []string{"/metrics", "/api/v1/nodes/" + h.Node.NodeName + "/proxy/metrics"} {
		if text, err := metricsText(ctx, client.CoreV1().RESTClient(), path); err == nil {
			addLatencies(found, text)
		}
	}
	return found
}

func metricsText(ctx context.Context, client rest.Interface, path string) ([]byte, error) {
	text, err := client.Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return text, nil
}

// addLatencies adds what the text of a /metrics says.
func addLatencies(found map[string]map[string]latencySummary, text []byte) {
	// Only the lines of this metric: an API server has tens of thousands of others.
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
		labels := labelsOf(metric)
		driver, operation := labels["driver"], labels["operation"]
		if found[driver] == nil {
			found[driver] = map[string]latencySummary{}
		}
		sum, calls := metric.GetHistogram().GetSampleSum(), metric.GetHistogram().GetSampleCount()
		one := found[driver][operation]
		one.Calls += calls
		one.total += sum
		if labels["status"] != "success" {
			one.Errors += calls
		}
		if one.Calls > 0 {
			one.MeanSeconds = one.total / float64(one.Calls)
		}
		found[driver][operation] = one
	}
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// slowestOperation names the operation with the longest mean.
func slowestOperation(latency map[string]latencySummary) string {
	var name string
	for operation, one := range latency {
		if other := latency[name]; name == "" || one.MeanSeconds > other.MeanSeconds || one.MeanSeconds == other.MeanSeconds && operation < name {
			name = operation
		}
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s %.0fms", name, 1000*latency[name].MeanSeconds)
}
