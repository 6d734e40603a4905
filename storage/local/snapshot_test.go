package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
)

// snapshot creates a snapshot and returns its handle.
func (n *node) snapshot(name, volume string) string {
	n.t.Helper()
	r := &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume}
	return must[*csi.CreateSnapshotResponse](n.t)(n.CreateSnapshot(context.Background(), r)).GetSnapshot().GetSnapshotId()
}

func fromSnapshot(r *csi.CreateVolumeRequest, snapshot string) *csi.CreateVolumeRequest {
	r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot},
	}}
	return r
}

func fromVolume(r *csi.CreateVolumeRequest, volume string) *csi.CreateVolumeRequest {
	r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume},
	}}
	return r
}

// disks returns a directory on a file system that copies images, and a directory on a file system
// that shares their blocks.
func disks(t *testing.T) map[string]string {
	return map[string]string{"copied": t.TempDir(), "shared": onXFS(t)}
}

// count starts a program that runs until the end of the test. The program writes 1, 2, 3, ... to a
// file, one number per line, and syncs the file after each line.
func count(t *testing.T, path string) {
	t.Helper()
	f := must[*os.File](t)(os.Create(path))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 1; err == nil && ctx.Err() == nil; i++ {
			if _, err = f.WriteString(strconv.Itoa(i) + "\n"); err == nil {
				err = f.Sync()
			}
		}
		f.Close()
		done <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the writer failed: %v", err)
		}
	})
	eventually.True(t, "the writer is writing", func() bool { return last(t, path) > 0 })
}

// last returns the last number in the file. It fails the test if a preceding line is wrong.
func last(t *testing.T, path string) int {
	t.Helper()
	content := string(must[[]byte](t)(os.ReadFile(path)))
	lines := strings.Split(strings.TrimRight(content, "\x00"), "\n")
	for i, line := range lines[:len(lines)-1] {
		if line != strconv.Itoa(i+1) {
			t.Fatalf("line %d of the copy is %q", i+1, line)
		}
	}
	return len(lines) - 1
}

func TestCopiesOfVolumeInUseAreConsistent(t *testing.T) {
	for name, dir := range disks(t) {
		for _, fsType := range []string{"ext4", "xfs"} {
			t.Run(name+" "+fsType, func(t *testing.T) {
				n := start(t, dir)
				handle := n.create(request(fsType, 300, mounted(fsType)))
				file := filepath.Join(n.use(handle, mounted(fsType)), "count")
				count(t, file)

				before := last(t, file)
				snapshot := n.snapshot("of-"+fsType, handle)
				clone := n.use(n.create(fromVolume(request("clone-"+fsType, 300, mounted(fsType)), handle)), mounted(fsType))
				at := last(t, file)
				eventually.True(t, "the writer continues", func() bool { return last(t, file) > at })

				restored := n.use(n.create(fromSnapshot(request("restored-"+fsType, 600, mounted(fsType)), snapshot)), mounted(fsType))
				for _, copied := range []string{restored, clone} {
					if got := last(t, filepath.Join(copied, "count")); got < before || got > at {
						t.Errorf("the copy ends with %d, want between %d and %d", got, before, at)
					}
				}
				if got := must[filesystem.Space](t)(filesystem.Measure(restored)).Bytes; got < 500<<20 {
					t.Errorf("the larger volume's file system has %d bytes", got)
				}
			})
		}
	}
}

func TestCopiesShareBlocks(t *testing.T) {
	n := start(t, onXFS(t))
	handle := n.create(request("source", 300, mounted("ext4")))
	if err := write(filepath.Join(n.use(handle, mounted("ext4")), "a"), 64<<20); err != nil {
		t.Fatal(err)
	}
	before := must[filesystem.Space](t)(filesystem.Measure(n.dir)).FreeBytes
	n.snapshot("shared", handle)
	clone := n.create(fromVolume(request("clone", 300, mounted("ext4")), handle))
	if duration := before - must[filesystem.Space](t)(filesystem.Measure(n.dir)).FreeBytes; duration > 16<<20 {
		t.Errorf("two copies of 64 MiB take %d bytes", duration)
	}
	both := []string{n.image(handle), n.image(clone)}
	if usage := must[int64](t)(image.DiskUsage(both, true)); usage < 64<<20 || usage > 80<<20 {
		t.Errorf("the reported usage of a volume with 64 MiB and its clone is %d bytes", usage)
	}
}

func TestSnapshotOutlivesVolume(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("source", 16, raw()))
	if err := os.WriteFile(n.use(handle, raw()), []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := n.CreateSnapshot(context.Background(), &csi.CreateSnapshotRequest{Name: "live", SourceVolumeId: handle}); err == nil {
		t.Error("a raw block volume in use was copied block by block")
	} else {
		checkError(t, err, codes.FailedPrecondition, "in use as a raw block device")
	}
	n.stopUsing(handle)
	snapshot := n.snapshot("kept", handle)
	_, err := n.CreateSnapshot(context.Background(), &csi.CreateSnapshotRequest{Name: "kept", SourceVolumeId: "node1/other"})
	checkError(t, err, codes.AlreadyExists, "belongs to volume")
	n.remove(handle)
	restored := n.create(fromSnapshot(request("restored", 16, raw()), snapshot))
	must[*csi.DeleteSnapshotResponse](t)(n.DeleteSnapshot(context.Background(), &csi.DeleteSnapshotRequest{SnapshotId: snapshot}))
	if got := string(must[[]byte](t)(os.ReadFile(n.use(restored, raw()))))[:4]; got != "kept" {
		t.Errorf("it starts with %q", got)
	}
	_, err = n.CreateVolume(context.Background(), fromVolume(request("odd", 16, mounted("ext4")), restored))
	checkError(t, err, codes.InvalidArgument, "a raw block volume, which cannot become a volume with ext4")
}

func TestRawBlockVolumeInUseIsCopiedAtomically(t *testing.T) {
	n := start(t, onXFS(t))
	handle := n.create(request("source", 16, raw()))
	device := n.use(handle, raw())
	if err := os.WriteFile(device, []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	clone := n.use(n.create(fromVolume(request("clone", 16, raw()), handle)), raw())
	if got := string(must[[]byte](t)(os.ReadFile(clone)))[:4]; got != "kept" {
		t.Errorf("it starts with %q", got)
	}
}

func TestGroupSnapshotIsConsistent(t *testing.T) {
	n := start(t, onXFS(t))
	first, second := n.create(request("first", 16, mounted("ext4"))), n.create(request("second", 16, mounted("ext4")))
	for _, handle := range []string{first, second} {
		if err := write(filepath.Join(n.use(handle, mounted("ext4")), "a"), 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	r := &csi.CreateVolumeGroupSnapshotRequest{Name: "both", SourceVolumeIds: []string{second, first}}
	group := must[*csi.CreateVolumeGroupSnapshotResponse](t)(n.CreateVolumeGroupSnapshot(context.Background(), r)).GetGroupSnapshot()
	again := must[*csi.CreateVolumeGroupSnapshotResponse](t)(n.CreateVolumeGroupSnapshot(context.Background(), r)).GetGroupSnapshot()
	if len(group.GetSnapshots()) != 2 || !group.GetReadyToUse() || !proto.Equal(group, again) {
		t.Errorf("created %v, and after a repeated request %v", group, again)
	}
	name := group.GetSnapshots()[0].GetSnapshotId()
	restored := n.use(n.create(fromSnapshot(request("restored", 16, mounted("ext4")), name)), mounted("ext4"))
	if info, err := os.Stat(filepath.Join(restored, "a")); err != nil || info.Size() != 1<<20 {
		t.Errorf("the restored volume has %v, %v", info, err)
	}
	_, err := n.DeleteSnapshot(context.Background(), &csi.DeleteSnapshotRequest{SnapshotId: name})
	checkError(t, err, codes.FailedPrecondition, "belongs to group")
	r.SourceVolumeIds = []string{first}
	_, err = n.CreateVolumeGroupSnapshot(context.Background(), r)
	checkError(t, err, codes.AlreadyExists, "exists and contains volumes")
	must[*csi.DeleteVolumeGroupSnapshotResponse](t)(n.DeleteVolumeGroupSnapshot(context.Background(), &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: group.GetGroupSnapshotId()}))
	if snapshots := must[*csi.ListSnapshotsResponse](t)(n.ListSnapshots(context.Background(), &csi.ListSnapshotsRequest{})).GetEntries(); len(snapshots) > 0 {
		t.Errorf("%v remain", snapshots)
	}
}

func TestSnapshotsThatAreBeingCreatedShareTheCapacity(t *testing.T) {
	n := start(t, onXFS(t))
	var volumes []string
	for _, name := range []string{"first", "second"} {
		handle := n.create(request(name, 512, mounted("ext4")))
		if err := write(filepath.Join(n.use(handle, mounted("ext4")), "a"), 300<<20); err != nil {
			t.Fatal(err)
		}
		volumes = append(volumes, handle)
	}
	capacity := func() int64 {
		t.Helper()
		return must[*csi.GetCapacityResponse](t)(n.GetCapacity(context.Background(), &csi.GetCapacityRequest{})).GetAvailableCapacity() >> 20
	}
	n.create(request("other", capacity()-400, raw())) // enough remains for either snapshot
	group := func(volumes ...string) error {
		_, err := n.CreateVolumeGroupSnapshot(context.Background(), &csi.CreateVolumeGroupSnapshotRequest{Name: "group", SourceVolumeIds: volumes})
		return err
	}
	checkError(t, group(volumes...), codes.ResourceExhausted, "committed to other volumes")
	if got := capacity(); got < 390 {
		t.Errorf("after a rejected group, the capacity is %d MiB", got)
	}
	if err := group(volumes[0]); err != nil {
		t.Error(err)
	}
	if got := capacity(); got < 80 || got > 105 {
		t.Errorf("after a snapshot of 300 MiB, the capacity is %d MiB", got)
	}
}
