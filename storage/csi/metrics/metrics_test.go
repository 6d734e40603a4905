package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"k8s.io/client-go/util/workqueue"

	"github.com/slipway-platform/slipway/storage/csi/driver"
)

func TestMetricsByDriver(t *testing.T) {
	m := New()
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	const method = "/csi.v1.Controller/CreateVolume"
	m.Observe(driver.Call{Driver: "one.example.com", Method: method, Code: codes.OK, Duration: 20 * time.Millisecond})
	m.Observe(driver.Call{Driver: "two.example.com", Method: method, Code: codes.Unavailable, Duration: time.Second})
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "provision", MetricsProvider: m.Queues("one.example.com")})
	defer queue.ShutDown()
	queue.Add("a")
	queue.Add("b")
	first, _ := queue.Get()
	queue.Done(first)

	response := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`csi_operations_seconds_bucket{driver_name="one.example.com",grpc_status_code="OK",method_name="` + method + `",le="0.01"} 0`,
		`csi_operations_seconds_bucket{driver_name="one.example.com",grpc_status_code="OK",method_name="` + method + `",le="0.025"} 1`,
		`csi_operations_seconds_count{driver_name="two.example.com",grpc_status_code="Unavailable",method_name="` + method + `"} 1`,
		`workqueue_depth{driver_name="one.example.com",name="provision"} 1`,
		`workqueue_adds_total{driver_name="one.example.com",name="provision"} 2`,
		`workqueue_work_duration_seconds_count{driver_name="one.example.com",name="provision"} 1`,
	} {
		if !strings.Contains(response.Body.String(), want+"\n") {
			t.Errorf("metrics lack %s:\n%s", want, response.Body)
		}
	}
}
