package measure

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/slipway-platform/slipway/apigroup/metrics"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/test/kit"
)

const (
	// metricsPods is the number of pods on the measured node.
	metricsPods = 250
	// metricsTime is how long the measured component runs. The component reads the usage every 15
	// s.
	metricsTime = 2 * time.Minute
	// metricsMemory is the target for memory, in bytes. metricsShare is the target for CPU time, as
	// a share of one CPU.
	metricsMemory, metricsShare = 10e6, 0.01
)

const manyPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: %d
  progressDeadlineSeconds: 3600
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: %s, command: [sleep, infinity]}]
`

// TestMetrics measures the component that reads the usage of nodes and pods. It runs the component
// in the test process, so that the measurement excludes the rest of the control plane. The node
// runs real pods.
func TestMetrics(t *testing.T) {
	r := newTable("metrics")
	c := kit.Start(t, kit.Options{Node: `kubeletArguments: {max-pods: ["300"]}`})
	client := unlimited(t, c)
	c.Apply(fmt.Sprintf(manyPods, metricsPods, kit.ToolsImage))
	for deadline := time.Now().Add(20 * time.Minute); ; leaveAlone(time.Second) {
		running, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("status.phase", "Running").String()})
		if err == nil && len(running.Items) == metricsPods {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d pods run: %v", len(running.Items), metricsPods, err)
		}
	}

	before := liveHeap()
	usage := metrics.NewUsage()
	collector := metrics.Collector{Deps: &controller.Deps{Kube: client}, Usage: usage}
	componenttest.Run(t, collector.Run)
	leaveAlone(20 * time.Second) // wait until the component has connected and read the usage
	start, used := time.Now(), processTime(t)
	leaveAlone(metricsTime)
	share := (processTime(t) - used).Seconds() / time.Since(start).Seconds()
	bytes := liveHeap() - before
	r.most(fmt.Sprintf("memory for the usage of %d pods", metricsPods), float64(bytes)/1e6, metricsMemory/1e6, "%.1f MB")
	r.most("CPU time to read it every 15 s", 100*share, 100*metricsShare, "%.2f %% of a core")
	runtime.KeepAlive(usage)
	r.write(t)
}

// liveHeap returns the size of live heap objects, in bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the second collection empties pools
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// processTime returns this process's CPU time.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
