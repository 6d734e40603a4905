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

// Metrics exports OpenShift 3's build metrics: openshift_build_total by phase, reason and strategy,
// and openshift_build_active_time_seconds for each build that has not finished. The latter metric's
// value is the build's start time or, before the build starts, its creation time, in seconds since
// 1970.
//
// Source: the build controller metrics of OpenShift 3.11.
type Metrics struct {
	metrics.BaseStableCollector
	total, active *metrics.Desc
	builds        atomic.Pointer[buildlisters.BuildLister]
}

// NewMetrics registers the metrics. A process can call it only once. The metrics have values only
// while the controllers are running.
func NewMetrics() (*Metrics, error) {
	m := newMetrics()
	if err := legacyregistry.CustomRegister(m); err != nil {
		return nil, fmt.Errorf("register build metrics: %w", err)
	}
	return m, nil
}

func newMetrics() *Metrics {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(name, help, labels, nil, metrics.ALPHA, "")
	}
	return &Metrics{
		total:  desc("openshift_build_total", "Builds by phase, reason and strategy.", "phase", "reason", "strategy"),
		active: desc("openshift_build_active_time_seconds", "Time at which an active build was created or started.", "namespace", "name", "phase", "reason", "strategy"),
	}
}

// show sets the lister that provides the builds for the metrics.
func (m *Metrics) show(builds buildlisters.BuildLister) {
	if m != nil {
		m.builds.Store(&builds)
	}
}

// DescribeWithStability sends the descriptors.
func (m *Metrics) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- m.total
	out <- m.active
}

// CollectWithStability sends the metrics of the cached builds.
func (m *Metrics) CollectWithStability(out chan<- metrics.Metric) {
	lister := m.builds.Load()
	if lister == nil {
		return
	}
	builds, _ := (*lister).List(labels.Everything()) // the cache returns no errors
	type kind struct{ phase, reason, strategy string }
	total := map[kind]int{}
	for _, build := range builds {
		of := kind{string(build.Status.Phase), reasonOf(build), string(build.Spec.Strategy.Type)}
		total[of]++
		if instantiate.Ended(build) {
			continue
		}
		start := build.CreationTimestamp
		if build.Status.StartTimestamp != nil {
			start = *build.Status.StartTimestamp
		}
		out <- metrics.NewLazyConstMetric(m.active, metrics.GaugeValue, float64(start.Unix()), build.Namespace, build.Name, of.phase, of.reason, of.strategy)
	}
	for of, count := range total {
		out <- metrics.NewLazyConstMetric(m.total, metrics.GaugeValue, float64(count), of.phase, of.reason, of.strategy)
	}
}

// reasonOf returns the value of the "reason" label. It replaces the reasons of failed custom builds
// with a fixed value, because custom builders can report any number of different reasons.
func reasonOf(build *buildv1.Build) string {
	if build.Spec.Strategy.CustomStrategy != nil && build.Status.Phase == buildv1.BuildPhaseFailed {
		return string(buildv1.StatusReasonGenericBuildFailed)
	}
	return string(build.Status.Reason)
}
