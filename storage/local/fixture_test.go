package local_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/local"
)

// node is a running driver and its client. Its helper methods fail the test on errors.
type node struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.GroupControllerClient
	csi.NodeClient

	t      *testing.T
	dir    string          // contains the driver's directory, the socket and the mount points
	staged map[string]bool // staged volumes
	driver *componenttest.Component
}

// start starts a driver whose directory and socket are in dir, and returns its client.
func start(t *testing.T, dir string, change ...func(*local.Driver)) *node {
	t.Helper()
	socket := filepath.Join(dir, "csi.sock")
	driver := &local.Driver{Node: "node1", Dir: filepath.Join(dir, "data"), Socket: socket}
	for _, f := range change {
		f(driver)
	}
	n := dial(t, dir)
	n.driver = componenttest.Run(t, driver.Run)
	return n
}

// dial returns a client for the driver whose socket is in dir.
func dial(t *testing.T, dir string) *node {
	t.Helper()
	option := grpc.WithConnectParams(grpc.ConnectParams{
		// Allow one minute, because a busy machine responds slowly.
		Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, MaxDelay: 10 * time.Millisecond}, MinConnectTimeout: time.Minute,
	})
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "csi.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()), option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &node{csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewGroupControllerClient(conn), csi.NewNodeClient(conn), t, dir, map[string]bool{}, nil}
}

// must fails the test immediately on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// checkError checks that err has the given code and contains the given text.
func checkError(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("got %v, want %s with %q", err, code, text)
	}
}

// mounted returns the capability of a volume with a file system. "" selects the driver's default
// file system.
func mounted(fsType string) *csi.VolumeCapability {
	return with(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
	})
}

// raw returns the capability of a raw block volume.
func raw() *csi.VolumeCapability {
	return with(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
	})
}

// with returns the capability with a different access mode.
func with(mode csi.VolumeCapability_AccessMode_Mode, c *csi.VolumeCapability) *csi.VolumeCapability {
	c.AccessMode = &csi.VolumeCapability_AccessMode{Mode: mode}
	return c
}

// request returns a request for a volume with a size of mib MiB.
func request(name string, mib int64, c *csi.VolumeCapability) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{c}, CapacityRange: &csi.CapacityRange{RequiredBytes: mib << 20},
	}
}

// create creates a volume and returns its handle.
func (n *node) create(r *csi.CreateVolumeRequest) string {
	n.t.Helper()
	return must[*csi.CreateVolumeResponse](n.t)(n.CreateVolume(context.Background(), r)).GetVolume().GetVolumeId()
}

// staging returns a volume's staging path. target returns its target path.
func (n *node) staging(handle string) string {
	return filepath.Join(n.dir, "staging", filepath.Base(handle))
}
func (n *node) target(handle string) string {
	return filepath.Join(n.dir, "target", filepath.Base(handle))
}

// use stages and publishes a volume and returns its target path. The volume is unpublished and
// unstaged by stopUsing or at the end of the test.
func (n *node) use(handle string, c *csi.VolumeCapability) string {
	n.t.Helper()
	n.stage(handle, c)
	r := &csi.NodePublishVolumeRequest{VolumeId: handle, StagingTargetPath: n.staging(handle), TargetPath: n.target(handle), VolumeCapability: c}
	must[*csi.NodePublishVolumeResponse](n.t)(n.NodePublishVolume(context.Background(), r))
	return n.target(handle)
}

func (n *node) stage(handle string, c *csi.VolumeCapability) {
	n.t.Helper()
	r := &csi.NodeStageVolumeRequest{VolumeId: handle, StagingTargetPath: n.staging(handle), VolumeCapability: c}
	must[*csi.NodeStageVolumeResponse](n.t)(n.NodeStageVolume(context.Background(), r))
	n.staged[handle] = true
	n.t.Cleanup(func() {
		if n.staged[handle] {
			n.stopUsing(handle)
		}
	})
}

func (n *node) stopUsing(handle string) {
	n.t.Helper()
	unpublish := &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: n.target(handle)}
	must[*csi.NodeUnpublishVolumeResponse](n.t)(n.NodeUnpublishVolume(context.Background(), unpublish))
	unstage := &csi.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: n.staging(handle)}
	must[*csi.NodeUnstageVolumeResponse](n.t)(n.NodeUnstageVolume(context.Background(), unstage))
	delete(n.staged, handle)
}

// remove deletes a volume.
func (n *node) remove(handle string) {
	n.t.Helper()
	must[*csi.DeleteVolumeResponse](n.t)(n.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: handle}))
}

// image returns the path of a volume's image. record returns the path of the volume's record.
func (n *node) image(handle string) string {
	return filepath.Join(n.dir, "data", "volumes", filepath.Base(handle)+".img")
}
func (n *node) record(handle string) string {
	return filepath.Join(n.dir, "data", "volumes", filepath.Base(handle)+".json")
}

// command runs a program.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	output, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, output)
	}
	return string(output)
}

// write writes and syncs a file of size bytes.
func write(path string, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); size > 0; size -= len(chunk) {
		chunk[0]++ // write data that is not zero
		if _, err := f.Write(chunk[:min(size, len(chunk))]); err != nil {
			return err
		}
	}
	return f.Sync()
}

// onXFS returns a directory on an xfs file system, which can share blocks between files. t.TempDir
// is on the machine's own file system, which might not support this.
func onXFS(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	disk, mount := filepath.Join(dir, "disk"), filepath.Join(dir, "mount")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 4<<30); err != nil {
		t.Fatal(err)
	}
	command(t, "mkfs.xfs", "-q", disk)
	command(t, "mount", "-o", "loop,nouuid", disk, mount)
	t.Cleanup(func() { // The kernel detaches the devices of images after a short delay.
		eventually.True(t, "unmount of the disk", func() bool { return unix.Unmount(mount, 0) == nil })
	})
	return mount
}
