package local_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/moby/sys/mountinfo"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/usermode"
	"github.com/slipway-platform/slipway/storage/local"
	"github.com/slipway-platform/slipway/storage/local/loop"
)

// driverDir is the environment variable that makes the test executable run as a driver. Its value
// is the driver's directory.
const driverDir = "SLIPWAY_TEST_LOCAL_DRIVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(driverDir); dir != "" {
		driver := local.Driver{Node: "node1", Dir: filepath.Join(dir, "data"), Socket: filepath.Join(dir, "csi.sock")}
		fmt.Fprintln(os.Stderr, driver.Run(context.Background(), func() {}))
		os.Exit(1)
	}
	usermode.Main(m)
}

// victim is a driver in a separate process.
type victim struct {
	*node
	process *exec.Cmd
}

// run starts the process, possibly after a kill, and waits until the driver responds.
func (v *victim) run() {
	v.t.Helper()
	v.process = exec.Command("/proc/self/exe")
	v.process.Env = append(os.Environ(), driverDir+"="+v.dir)
	v.process.Stderr = os.Stderr
	if err := v.process.Start(); err != nil {
		v.t.Fatal(err)
	}
	eventually.True(v.t, "the driver responds", func() bool {
		_, err := v.Probe(context.Background(), &csi.ProbeRequest{})
		return err == nil
	})
}

// kill kills the process with SIGKILL, like a crash.
func (v *victim) kill() {
	_ = v.process.Process.Signal(syscall.SIGKILL)
	_ = v.process.Wait() // Wait returns an error because the process was killed
}

// step is an operation that a client repeats until it succeeds.
type step struct {
	name string
	call func() error
}

// finish repeats an operation until it succeeds.
func (v *victim) finish(s step) {
	v.t.Helper()
	var err error
	for range 100 {
		if err = s.call(); err == nil {
			return
		}
	}
	v.t.Fatalf("%s: %v", s.name, err)
}

// killIn starts an operation, kills the process after a delay, restarts the process and completes
// the operation.
func (v *victim) killIn(s step, after time.Duration) {
	v.t.Helper()
	start := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		close(start)
		_ = s.call() // returns an error if the process was killed first
	}()
	<-start
	<-time.After(after)
	v.kill()
	<-done
	v.run()
	v.finish(s)
}

// TestKillAtAnyPointLosesNothing kills the driver at random points during every operation in a
// volume's lifecycle.
func TestKillAtAnyPointLosesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for name, dir := range disks(t) {
		v := &victim{node: dial(t, dir)}
		v.run()
		t.Cleanup(func() { v.kill() })
		for _, fsType := range []string{"ext4", "xfs"} {
			for _, s := range v.lifecycle(fsType, mounted(fsType)) {
				v.killIn(s, time.Duration(random.Int64N(int64(40*time.Millisecond))))
			}
		}
		v.checkNothingLeft(name)
	}
}

// lifecycle returns the operations in a volume's lifecycle, interleaved with checks of the volume's
// content.
func (v *victim) lifecycle(name string, c *csi.VolumeCapability) []step {
	ctx := context.Background()
	handle, snapshot, clone := "node1/"+name, "node1/"+name+"-snapshot", "node1/"+name+"-clone"
	create := request(name, 300, c)
	publish := func(handle string) func() error {
		return func() error {
			return errors.Join(
				errorOf(v.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: handle, StagingTargetPath: v.staging(handle), VolumeCapability: c})),
				errorOf(v.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: handle, StagingTargetPath: v.staging(handle), TargetPath: v.target(handle), VolumeCapability: c})))
		}
	}
	unpublish := func(handle string) func() error {
		return func() error {
			return errors.Join(
				errorOf(v.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: handle, TargetPath: v.target(handle)})),
				errorOf(v.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: v.staging(handle)})))
		}
	}
	ephemeral := &csi.NodePublishVolumeRequest{
		VolumeId: "csi-" + name, TargetPath: v.target("csi-" + name), VolumeCapability: mounted(""),
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "size": "16Mi"},
	}
	return []step{
		{"create", func() error { return errorOf(v.CreateVolume(ctx, create)) }},
		{"publish", publish(handle)},
		{"write", func() error { return v.write(handle) }},
		{"snapshot", func() error {
			return errorOf(v.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name + "-snapshot", SourceVolumeId: handle}))
		}},
		// The check blocks forever if the file system is still frozen.
		{"check after snapshot", func() error { return v.check(handle) }},
		{"clone", func() error { return errorOf(v.CreateVolume(ctx, fromVolume(request(name+"-clone", 300, c), handle))) }},
		{"publish clone", publish(clone)},
		{"check clone", func() error { return v.check(clone) }},
		{"unpublish clone", unpublish(clone)},
		{"restore", func() error {
			return errorOf(v.CreateVolume(ctx, fromSnapshot(request(name+"-restored", 300, c), snapshot)))
		}},
		{"expand", func() error {
			return errorOf(v.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: handle, CapacityRange: &csi.CapacityRange{RequiredBytes: 400 << 20}}))
		}},
		{"unpublish", unpublish(handle)},
		{"publish larger", publish(handle)},
		{"check larger", func() error { return v.check(handle) }},
		{"unpublish larger", unpublish(handle)},
		{"publish ephemeral", func() error { return errorOf(v.NodePublishVolume(ctx, ephemeral)) }},
		{"unpublish ephemeral", func() error {
			return errorOf(v.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: ephemeral.VolumeId, TargetPath: ephemeral.TargetPath}))
		}},
		{"delete snapshot", func() error {
			return errorOf(v.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: snapshot}))
		}},
		{"delete", func() error { return errorOf(v.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: handle})) }},
		{"delete clone", func() error { return errorOf(v.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: clone})) }},
		{"delete restored", func() error {
			return errorOf(v.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "node1/" + name + "-restored"}))
		}},
	}
}

// write writes the content that a volume must not lose.
func (v *victim) write(handle string) error {
	f, err := os.OpenFile(filepath.Join(v.target(handle), "first"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("kept")
	return errors.Join(err, f.Sync(), f.Close())
}

// check returns an error unless a volume contains the data that write wrote and is writable.
func (v *victim) check(handle string) error {
	content, err := os.ReadFile(filepath.Join(v.target(handle), "first"))
	if err != nil || string(content) != "kept" {
		return fmt.Errorf("it contains %q (%w)", content, err)
	}
	return write(filepath.Join(v.target(handle), "again"), 1<<20)
}

// checkNothingLeft checks that no file, device or mount of a deleted volume remains.
func (v *victim) checkNothingLeft(point string) {
	v.t.Helper()
	for _, folder := range []string{"volumes", "snapshots"} {
		folder = filepath.Join(v.dir, "data", folder)
		for _, entry := range must[[]os.DirEntry](v.t)(os.ReadDir(folder)) {
			v.t.Errorf("%s: %s remains in %s", point, entry.Name(), folder)
		}
		for _, device := range must[[]loop.Device](v.t)(loop.List(folder)) {
			v.t.Errorf("%s: %s remains", point, device.Path)
		}
	}
	infos := must[[]*mountinfo.Info](v.t)(mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, v.dir+"/"), false
	}))
	for _, m := range infos {
		v.t.Errorf("%s: %s remains mounted", point, m.Mountpoint)
	}
}
