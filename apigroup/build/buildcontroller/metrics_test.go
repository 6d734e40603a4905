package buildcontroller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	buildv1 "github.com/openshift/api/build/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
)

func TestMetricsCountBuilds(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	start := metav1.Unix(200, 0)
	for name, status := range map[string]buildv1.BuildStatus{
		"app-1": {Phase: buildv1.BuildPhaseFailed, Reason: "FetchSourceFailed"}, "app-2": {Phase: buildv1.BuildPhaseFailed, Reason: "FetchSourceFailed"},
		"app-3": {Phase: buildv1.BuildPhaseComplete, StartTimestamp: &start}, "app-4": {Phase: buildv1.BuildPhaseRunning, StartTimestamp: &start},
		"app-5": {Phase: buildv1.BuildPhaseNew},
	} {
		build := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.Unix(100, 0)}, Status: status}
		build.Spec.Strategy.Type = buildv1.DockerBuildStrategyType
		if err := indexer.Add(build); err != nil {
			t.Fatal(err)
		}
	}
	registry, m := metrics.NewKubeRegistry(), newMetrics()
	registry.CustomMustRegister(m)
	if got := gather(t, registry); len(got) > 0 {
		t.Errorf("metrics before the start of the controllers are %q", got)
	}
	m.show(buildlisters.NewBuildLister(indexer))
	want := []string{
		"openshift_build_active_time_seconds app-4 shop Running  Docker 200", "openshift_build_active_time_seconds app-5 shop New  Docker 100",
		"openshift_build_total Complete  Docker 1", "openshift_build_total Failed FetchSourceFailed Docker 2",
		"openshift_build_total New  Docker 1", "openshift_build_total Running  Docker 1",
	}
	if diff := cmp.Diff(want, gather(t, registry)); diff != "" {
		t.Error(diff)
	}
}

// gather returns a registry's metrics with their label values, sorted by label name.
func gather(t *testing.T, registry metrics.KubeRegistry) (lines []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			line := family.GetName()
			for _, label := range metric.GetLabel() {
				line += " " + label.GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s %g", line, metric.GetGauge().GetValue()))
		}
	}
	return lines
}
