package csi

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// Every concern serves the driver here. A cache of all pods of a cluster would be most of the process's memory.
func TestNoLoopCachesPods(t *testing.T) {
	c := newCluster(t, fake.Options{})
	c.start()
	c.volume("data")
	watched := map[string]bool{}
	for request := range c.api.Requests() {
		if resource, ok := strings.CutPrefix(request, "watch "); ok {
			watched[resource] = true
		}
	}
	for _, needed := range []string{"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "volumeattributesclasses"} {
		if !watched[needed] {
			t.Errorf("nobody watches %s: the loops are not those of a real process", needed)
		}
	}
	if watched["pods"] || c.api.Requests()["list pods"] > 0 {
		t.Error("a loop caches pods")
	}
}
