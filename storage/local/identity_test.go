package local_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/slipway-platform/slipway/storage/local"
)

// The scheduler must not place pods with any number of volumes on a node, because the kernel's
// threads for them are not part of the pods.
func TestNodeHasMaximumNumberOfVolumes(t *testing.T) {
	info, err := (&local.Driver{Node: "node1"}).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetMaxVolumesPerNode() <= 0 {
		t.Errorf("got %v, %v", info, err)
	}
}
