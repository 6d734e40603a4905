package buildcontroller

import (
	"fmt"
	"sync/atomic"

	buildv1 "github.com/openshift/api/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// Metrics count the builds that there are, under OpenShift 3's names: openshift_build_total by phase, reason and strategy, and for each build that
// has not ended openshift_build_active_time_seconds, when it was made or, if it runs, began to, in seconds since 1970.
//
// Source: OpenShift 3.11, the metrics of its build controller.
type Metrics struct {
	metrics.BaseStableCollector
	total, active *metrics.Desc
	builds        atomic.Pointer[buildlisters.BuildLister]
}

// NewMetrics registers the metrics, which a process may do once. They show builds from the start of the controllers on.
func NewMetrics() (*Metrics, error) {
	m := makeMetrics()
	if err := legacyregistry.CustomRegister(m); err != nil {
		return nil, fmt.Errorf("register metrics of builds: %w", err)
	}
	return m, nil
}

func makeMetrics() *Metrics {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(name, help, labels, nil, metrics.ALPHA, "")
	}
	return &Metrics{
		total:  desc("openshift_build_total", "Builds by phase, reason and strategy.", "phase", "reason", "strategy"),
		active: desc("openshift_build_active_time_seconds", "When a build that has not ended was made or began to run.", "namespace", "name", "phase", "reason", "strategy"),
	}
}

// show lets the metrics see builds.
func (m *Metrics) show(builds buildlisters.BuildLister) {
	if m != nil {
		m.builds.Store(&builds)
	}
}

// DescribeWithStability names the metrics.
func (m *Metrics) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- m.total
	out <- m.active
}

// CollectWithStability counts the builds that are known at present.
func (m *Metrics) CollectWithStability(out chan<- metrics.Metric) {
	known := m.builds.Load()
	if known == nil {
		return
	}
	builds, _ := (*known).List(labels.Everything()) // listing from the cache does not fail
	type kind struct{ phase, reason, strategy string }
	total := map[kind]int{}
	for _, build := range builds {
		of := kind{string(build.Status.Phase), reasonOf(build), string(build.Spec.Strategy.Type)}
		total[of]++
		if instantiate.Ended(build) {
			continue
		}
		since := build.CreationTimestamp
		if build.Status.StartTimestamp != nil {
			since = *build.Status.StartTimestamp
		}
		out <- metrics.NewLazyConstMetric(m.active, metrics.GaugeValue, float64(since.Unix()), build.Namespace, build.Name, of.phase, of.reason, of.strategy)
	}
	for of, count := range total {
		out <- metrics.NewLazyConstMetric(m.total, metrics.GaugeValue, float64(count), of.phase, of.reason, of.strategy)
	}
}

// reasonOf is a reason of the platform's; a custom builder may report others, of which there could be any number.
func reasonOf(build *buildv1.Build) string {
	if build.Spec.Strategy.CustomStrategy != nil && build.Status.Phase == buildv1.BuildPhaseFailed {
		return string(buildv1.StatusReasonGenericBuildFailed)
	}
	return string(build.Status.Reason)
}
