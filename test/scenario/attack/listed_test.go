package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestPodsCannotExceedListsOfKubelet creates pods with long fields. containerd returns these fields
// whenever the kubelet lists the node's containers, and a list that is too long makes the node not
// ready.
func TestPodsCannotExceedListsOfKubelet(t *testing.T) {
	s := tenants(t)
	const size = 100_000
	long := strings.Repeat("x", size)
	pod := func(name, annotation, hook string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, annotations: {note: %q}}, spec: {schedulingGates: [{name: example.com/never}], "+
			"containers: [{name: main, image: none, lifecycle: {preStop: {exec: {command: [%q]}}}}]}}", name, annotation, hook)
	}
	pods := kit.CorePath(s.evil, "pods")
	s.mallory.MayNot("POST", pods, pod("hook", "", long), "preStop hooks")
	s.mallory.MayNot("POST", pods, pod("annotation", long, ""), "labels and annotations")
	s.mallory.May("POST", pods, pod("later", "short", "short"))
	s.mallory.MayNot("PATCH", pods+"/later", fmt.Sprintf(`{"metadata": {"annotations": {"note": %q}}}`, long), "labels and annotations")
	s.mallory.May("PATCH", pods+"/later", `{"metadata": {"annotations": {"note": "longer"}}}`)
}
