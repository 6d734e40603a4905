package local_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/slipway-platform/slipway/storage/local"
)

// A node must limit its number of volumes, because each mounted volume uses kernel threads that no
// pod's process limit includes.
func TestNodeHasMaximumNumberOfVolumes(t *testing.T) {
	info, err := (&local.Driver{Node: "node1"}).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetMaxVolumesPerNode() <= 0 {
		t.Errorf("got %v, %v", info, err)
	}
}
