package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/storage/local/filesystem"
)

func TestCapacityExcludesCommittedSpace(t *testing.T) {
	n := start(t, onXFS(t), func(d *local.Driver) { d.Reserve = local.Reserve{Fraction: 0.25, Bytes: 100 << 20} })
	capacity := func() int64 {
		t.Helper()
		return must[*csi.GetCapacityResponse](t)(n.GetCapacity(context.Background(), &csi.GetCapacityRequest{})).GetAvailableCapacity() >> 20
	}
	full := capacity() // 4 GiB minus a quarter, 100 MiB, and the file system's own space
	if full < 2500 || full > 2972 {
		t.Errorf("an empty disk has a capacity of %d MiB", full)
	}
	handle := n.create(request("half", 512, mounted("ext4")))
	if got := full - capacity(); got < 511 || got > 513 {
		t.Errorf("a committed volume of 512 MiB reduces the capacity by %d", got)
	}
	if err := write(filepath.Join(n.use(handle, mounted("ext4")), "a"), 256<<20); err != nil {
		t.Fatal(err)
	}
	if got := full - capacity(); got < 508 || got > 516 {
		t.Errorf("a half-written volume of 512 MiB reduces the capacity by %d", got)
	}
	_, err := n.CreateVolume(context.Background(), request("too-much", full-500, mounted("ext4")))
	checkError(t, err, codes.ResourceExhausted, "committed to other volumes")
	_, err = n.ControllerExpandVolume(context.Background(), &csi.ControllerExpandVolumeRequest{
		VolumeId: handle, CapacityRange: &csi.CapacityRange{RequiredBytes: 8 << 30},
	})
	checkError(t, err, codes.ResourceExhausted, "committed to other volumes")
	// The snapshot shares 256 MiB with the volume until the blocks are overwritten.
	n.snapshot("one", handle)
	if got := full - capacity(); got < 760 || got > 790 {
		t.Errorf("a snapshot of 256 MiB reduces the capacity by %d", got)
	}
	elsewhere := &csi.GetCapacityRequest{AccessibleTopology: &csi.Topology{Segments: map[string]string{local.TopologyKey: "node2"}}}
	if got := must[*csi.GetCapacityResponse](t)(n.GetCapacity(context.Background(), elsewhere)).GetAvailableCapacity(); got != 0 {
		t.Errorf("another node has a capacity of %d bytes", got)
	}
}

func TestOvercommit(t *testing.T) {
	n := start(t, onXFS(t), func(d *local.Driver) { d.Overcommit = 10 })
	n.create(request("large", 20<<10, mounted("ext4")))
	_, err := n.CreateVolume(context.Background(), request("larger", 20<<10, mounted("ext4")))
	checkError(t, err, codes.ResourceExhausted, "committed to other volumes")
}

func TestCorruptRecordAffectsOnlyItsVolume(t *testing.T) {
	dir := t.TempDir()
	n := start(t, dir)
	damaged, other := n.create(request("damaged", 16, mounted("ext4"))), n.create(request("other", 16, mounted("ext4")))
	n.driver.Stop()
	for _, content := range []string{"", "{", `{"name": "other", "state": "ready", "size": 1}`, `{"name": "damaged", "state": "fine", "size": 1}`} {
		if err := os.WriteFile(n.record(damaged), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		n := start(t, dir)
		for _, err := range []error{
			errorOf(n.CreateVolume(context.Background(), request("damaged", 16, mounted("ext4")))),
			errorOf(n.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: damaged})),
			errorOf(n.ControllerGetVolume(context.Background(), &csi.ControllerGetVolumeRequest{VolumeId: damaged})),
			errorOf(n.NodeStageVolume(context.Background(), &csi.NodeStageVolumeRequest{VolumeId: damaged, StagingTargetPath: n.staging(damaged), VolumeCapability: mounted("")})),
		} {
			checkError(t, err, codes.Internal, fmt.Sprintf("record %q is corrupt", n.record(damaged)))
		}
		if _, err := os.Stat(n.image(damaged)); err != nil {
			t.Errorf("the image: %v", err)
		}
		health := must[*csi.ControllerListVolumeHealthResponse](t)(n.ControllerListVolumeHealth(context.Background(), &csi.ControllerListVolumeHealthRequest{}))
		if len(health.Entries) != 1 || health.Entries[0].GetVolumeId() != damaged || health.Entries[0].HealthStatuses[0].GetReason() != "RecordDamaged" {
			t.Errorf("health is %v", health)
		}
		n.use(other, mounted("ext4"))
		n.stopUsing(other)
		n.driver.Stop()
	}
}

func errorOf[T any](_ T, err error) error { return err }

func TestMissingImageIsReported(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("lost", 16, mounted("ext4")))
	if err := os.Remove(n.image(handle)); err != nil {
		t.Fatal(err)
	}
	health := must[*csi.NodeGetVolumeHealthResponse](t)(n.NodeGetVolumeHealth(context.Background(), &csi.NodeGetVolumeHealthRequest{VolumeId: handle}))
	statuses := health.GetVolumeHealth().GetHealthStatuses()
	if len(statuses) != 1 || statuses[0].GetStatus() != csi.VolumeHealthErrorType_DATA_LOSS {
		t.Errorf("health is %v", health)
	}
	_, err := n.NodeStageVolume(context.Background(), &csi.NodeStageVolumeRequest{VolumeId: handle, StagingTargetPath: n.staging(handle), VolumeCapability: mounted("")})
	checkError(t, err, codes.Internal, n.image(handle))
}

func TestVolumeOfOtherNodeIsNotDeleted(t *testing.T) {
	n := start(t, t.TempDir())
	_, err := n.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: "node2/mine"})
	checkError(t, err, codes.FailedPrecondition, `is on node "node2"`)
	for _, handle := range []string{"node1/..", "node1/", "/", "none"} {
		must[*csi.DeleteVolumeResponse](t)(n.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: handle}))
	}
}

func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	second := local.Driver{Node: "node1", Dir: filepath.Join(dir, "data"), Socket: filepath.Join(dir, "second.sock")}
	err := second.Run(context.Background(), func() { t.Error("the second process is ready") })
	if err == nil {
		t.Error("a second process is running")
	}
}

func TestListsArePaged(t *testing.T) {
	n := start(t, t.TempDir())
	var want []string
	for i := range 5 {
		want = append(want, n.create(request(fmt.Sprintf("v%d", i), 8, raw())))
	}
	var got []string
	list := func(token string, size int32) string {
		t.Helper()
		page := must[*csi.ListVolumesResponse](t)(n.ListVolumes(context.Background(), &csi.ListVolumesRequest{MaxEntries: size, StartingToken: token}))
		for _, entry := range page.GetEntries() {
			got = append(got, entry.GetVolume().GetVolumeId())
		}
		return page.GetNextToken()
	}
	token := list("", 2)
	n.remove(want[1]) // the last entry of the page
	token = list(token, 2)
	if list(token, 2) != "" || !slices.Equal(got, want) {
		t.Errorf("pages have %v, want %v", got, want)
	}
}

func TestFrozenFileSystemIsThawedAtStart(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("frozen", 16, mounted("ext4")))
	dir := n.use(handle, mounted("ext4"))
	n.driver.Stop()
	delete(n.staged, handle)
	err := filesystem.WithFrozen(dir, func() error {
		n = start(t, n.dir)
		return write(filepath.Join(dir, "a"), 4096) // blocks forever if frozen
	})
	if err != nil {
		t.Fatal(err)
	}
	n.staged[handle] = true
	n.stopUsing(handle)
}
