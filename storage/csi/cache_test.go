package csi

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// No controller may cache pods, because a cache of all pods in a cluster would use most of the
// process's memory. The driver in this test supports every feature, so all controllers run.
func TestNoControllerCachesPods(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	c.volume("data")
	watched := map[string]bool{}
	for request := range c.api.Requests() {
		if resource, ok := strings.CutPrefix(request, "watch "); ok {
			watched[resource] = true
		}
	}
	for _, resource := range []string{"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "volumeattributesclasses"} {
		if !watched[resource] {
			t.Errorf("no watch for %s: the test does not start the controllers of a real process", resource)
		}
	}
	if watched["pods"] || c.api.Requests()["list pods"] > 0 {
		t.Error("a controller caches pods")
	}
}
