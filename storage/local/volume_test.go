package local_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/local/filesystem"
	"github.com/slipway-platform/slipway/storage/local/image"
)

func TestVolumeSizeIsEnforced(t *testing.T) {
	n := start(t, t.TempDir())
	for fsType, mib := range map[string]int64{"ext4": 64, "xfs": 300} {
		full := n.use(n.create(request(fsType+"-full", mib, mounted(fsType))), mounted(fsType))
		neighbor := n.use(n.create(request(fsType+"-neighbor", mib, mounted(fsType))), mounted(fsType))
		if err := write(filepath.Join(full, "a"), int(mib)<<20); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: writing %[2]d MiB of files into %[2]d: %v, want %v", fsType, mib, err, unix.ENOSPC)
		}
		if info, err := os.Stat(filepath.Join(full, "a")); err != nil || info.Size() < mib<<20/2 {
			t.Errorf("%s: of %d MiB, only %v bytes are writable (%v)", fsType, mib, info.Size(), err)
		}
		if err := write(filepath.Join(neighbor, "a"), 1<<20); err != nil {
			t.Errorf("%s: another volume is affected: %v", fsType, err)
		}
	}
}

func TestVolumeIsThin(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("thin", 100, mounted("ext4")))
	file := filepath.Join(n.use(handle, mounted("ext4")), "a")
	allocated := func() int64 {
		unix.Sync() // ext4 discards deleted blocks when it commits its journal
		return must[int64](t)(image.Allocated(n.image(handle)))
	}
	if got := allocated(); got > 20<<20 {
		t.Errorf("an empty volume uses %d bytes", got)
	}
	if err := write(file, 50<<20); err != nil {
		t.Fatal(err)
	}
	if got := allocated(); got < 50<<20 {
		t.Errorf("a volume with 50 MiB uses %d bytes", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "deleted blocks are freed", func() bool { return allocated() < 20<<20 })
}

func TestThickVolumeAllocatesItsSize(t *testing.T) {
	n := start(t, t.TempDir())
	r := request("thick", 64, mounted("ext4"))
	r.Parameters = map[string]string{"allocation": "thick", "csi.storage.k8s.io/pvc/name": "of kubernetes"}
	if got := must[int64](t)(image.Allocated(n.image(n.create(r)))); got < 64<<20 {
		t.Errorf("it uses %d bytes, want 64 MiB", got)
	}
	r = request("odd", 64, mounted("ext4"))
	r.Parameters = map[string]string{"allocation": "fat"}
	_, err := n.CreateVolume(context.Background(), r)
	checkError(t, err, codes.InvalidArgument, `parameter allocation is "fat"`)
}

func TestRawBlockVolumeIsDevice(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("raw", 8, raw()))
	target := n.use(handle, raw())
	device, err := os.OpenFile(target, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if size := must[int64](t)(device.Seek(0, 2)); size != 8<<20 {
		t.Errorf("it has %d bytes, want 8 MiB", size)
	}
	must[*csi.ControllerExpandVolumeResponse](t)(n.ControllerExpandVolume(context.Background(), &csi.ControllerExpandVolumeRequest{
		VolumeId: handle, CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20}, VolumeCapability: raw(),
	}))
	must[*csi.NodeExpandVolumeResponse](t)(n.NodeExpandVolume(context.Background(), &csi.NodeExpandVolumeRequest{VolumeId: handle, VolumePath: target}))
	if size := must[int64](t)(device.Seek(0, 2)); size != 16<<20 {
		t.Errorf("it has %d bytes after its expansion, want 16 MiB", size)
	}
	_, err = n.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: handle})
	checkError(t, err, codes.FailedPrecondition, "is in use")
}

func TestOnlineExpansion(t *testing.T) {
	n := start(t, t.TempDir())
	for _, fsType := range []string{"ext4", "xfs"} {
		handle := n.create(request(fsType, 320, mounted(fsType)))
		target := n.use(handle, mounted(fsType))
		if err := os.WriteFile(filepath.Join(target, "kept"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		must[*csi.ControllerExpandVolumeResponse](t)(n.ControllerExpandVolume(context.Background(), &csi.ControllerExpandVolumeRequest{
			VolumeId: handle, CapacityRange: &csi.CapacityRange{RequiredBytes: 640 << 20},
		}))
		_, err := n.NodeExpandVolume(context.Background(), &csi.NodeExpandVolumeRequest{VolumeId: handle, VolumePath: target})
		// Without the CAP_SYS_RESOURCE capability, the volume is expanded before the next mount.
		if fsType == "ext4" && !canGrowMounted() {
			checkError(t, err, codes.FailedPrecondition, "CAP_SYS_RESOURCE")
			n.stopUsing(handle)
			target = n.use(handle, mounted(fsType))
		} else if err != nil {
			t.Fatal(err)
		}
		if got := must[filesystem.Space](t)(filesystem.Measure(target)).Bytes; got < 500<<20 {
			t.Errorf("%s: it has %d bytes after its expansion to 640 MiB", fsType, got)
		}
		if got := string(must[[]byte](t)(os.ReadFile(filepath.Join(target, "kept")))); got != "kept" {
			t.Errorf("%s: its content is %q", fsType, got)
		}
	}
}

// heldByNamespace starts a process whose mount namespace contains a copy of the current mounts. The
// process exits 300 ms after release is called. done receives the result of Wait.
func heldByNamespace(t *testing.T) (release func() (done <-chan error)) {
	t.Helper()
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "cat")
	input := must[io.WriteCloser](t)(holder.StdinPipe())
	output := must[io.ReadCloser](t)(holder.StdoutPipe())
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = input.Write([]byte("x")) // cat responds after unshare has created the namespace
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return func() <-chan error {
		done := make(chan error, 1)
		time.AfterFunc(300*time.Millisecond, func() {
			_ = input.Close()
			done <- holder.Wait()
		})
		return done
	}
}

func TestUnstageWaitsForOtherNamespace(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("held", 16, mounted("ext4")))
	n.use(handle, mounted("ext4"))
	done := heldByNamespace(t)()
	n.stopUsing(handle)
	n.use(handle, mounted("ext4"))
	if err := <-done; err != nil {
		t.Error(err)
	}
	n.stopUsing(handle)
	n.remove(handle)
}

func TestDeleteWaitsForOtherNamespace(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("held", 16, mounted("ext4")))
	n.stage(handle, mounted("ext4"))
	release := heldByNamespace(t)
	// Simulate unstaging, which cannot detach the device while the namespace exists.
	if err := filesystem.Unmount(n.staging(handle)); err != nil {
		t.Fatal(err)
	}
	delete(n.staged, handle)
	done := release()
	n.remove(handle)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// canGrowMounted reports whether this process can expand a mounted ext4 file system.
func canGrowMounted() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

func TestSingleWriterVolume(t *testing.T) {
	n := start(t, t.TempDir())
	capability := with(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, mounted("ext4"))
	handle := n.create(request("one", 16, capability))
	n.use(handle, capability)
	r := &csi.NodePublishVolumeRequest{VolumeId: handle, StagingTargetPath: n.staging(handle), TargetPath: n.target("other"), VolumeCapability: capability}
	_, err := n.NodePublishVolume(context.Background(), r)
	checkError(t, err, codes.FailedPrecondition, "allows a single writer")

	many := with(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, mounted("ext4"))
	_, err = n.CreateVolume(context.Background(), request("many", 16, many))
	checkError(t, err, codes.InvalidArgument, "a local volume is on one node")
}

func TestReadOnlyPublish(t *testing.T) {
	n := start(t, t.TempDir())
	handle := n.create(request("read", 16, mounted("ext4")))
	n.stage(handle, mounted("ext4"))
	r := &csi.NodePublishVolumeRequest{
		VolumeId: handle, StagingTargetPath: n.staging(handle), TargetPath: n.target(handle), VolumeCapability: mounted("ext4"), Readonly: true,
	}
	for range 2 {
		must[*csi.NodePublishVolumeResponse](t)(n.NodePublishVolume(context.Background(), r))
	}
	if err := os.Mkdir(filepath.Join(n.target(handle), "a"), 0o755); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing there: %v, want %v", err, unix.EROFS)
	}
	if err := os.Mkdir(filepath.Join(n.staging(handle), "a"), 0o755); err != nil {
		t.Errorf("writing as another user: %v", err)
	}
}

func TestMountOptions(t *testing.T) {
	n := start(t, t.TempDir())
	c := mounted("xfs")
	c.GetMount().MountFlags = []string{"noexec", "noatime"}
	target := n.use(n.create(request("options", 300, c)), c)
	var stat unix.Statfs_t
	if err := unix.Statfs(target, &stat); err != nil || stat.Flags&unix.MS_NOEXEC == 0 || stat.Flags&unix.MS_NOATIME == 0 {
		t.Errorf("flags are %#x (%v), want noexec and noatime", stat.Flags, err)
	}
}

func TestEphemeralVolumeIsDeletedWithPod(t *testing.T) {
	n := start(t, t.TempDir())
	const handle = "csi-0123456789abcdef"
	r := &csi.NodePublishVolumeRequest{
		VolumeId: handle, TargetPath: n.target(handle), VolumeCapability: mounted(""),
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p", "size": "16Mi"},
	}
	for range 2 {
		must[*csi.NodePublishVolumeResponse](t)(n.NodePublishVolume(context.Background(), r))
	}
	if err := write(filepath.Join(n.target(handle), "a"), 32<<20); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing 32 MiB into 16: %v, want %v", err, unix.ENOSPC)
	}
	for range 2 {
		must[*csi.NodeUnpublishVolumeResponse](t)(n.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: n.target(handle)}))
	}
	for _, path := range []string{n.target(handle), n.image(handle), n.record(handle)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s remains: %v", path, err)
		}
	}
	r.VolumeContext["size"] = "much"
	_, err := n.NodePublishVolume(context.Background(), r)
	checkError(t, err, codes.InvalidArgument, "write a size such as 100Mi")
}
