package adm

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/metricsutil"
	"k8s.io/metrics/pkg/apis/metrics"
)

func TestUsageHasTheHeadingsOfOpenShift3(t *testing.T) {
	var out strings.Builder
	resources := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	err := metricsutil.NewTopCmdPrinter(oldUsage{&out}, false).PrintNodeMetrics(
		[]metrics.NodeMetrics{{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Usage: resources}}, map[string]corev1.ResourceList{"node": resources}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME CPU(cores) CPU% MEMORY(bytes) MEMORY%" {
		t.Errorf("headings are %s", got)
	}
	if strings.Index(lines[0], "CPU%") != strings.Index(lines[1], "100%") {
		t.Errorf("columns are not aligned:\n%s", out.String())
	}
}
