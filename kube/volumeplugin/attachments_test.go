package volumeplugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// attach attaches the volume "pv" to the node and mounts it for a pod.
func attach(t *testing.T, c *cluster) volume.Mounter {
	t.Helper()
	spec := pv(nil)
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	must[string](t)(attacher.Attach(spec, nodeName))
	if err := attacher.MountDevice(spec, "/dev/x", deviceDir(t, c), volume.DeviceMounterArgs{}); err != nil {
		t.Fatal(err)
	}
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	if err := mounter.SetUp(volume.MounterArgs{}); err != nil {
		t.Fatal(err)
	}
	return mounter
}

func deviceDir(t *testing.T, c *cluster) string {
	return filepath.Join(c.root, "plugins", "kubernetes.io", "flexvolume", "example.com", "test", "mounts", "disk~7")
}

// release releases a volume as the kubelet does after a restart: no pod uses the volume, and the
// kubelet assumes that the controller attached it.
func release(t *testing.T, c *cluster) {
	t.Helper()
	plugin := must[volume.DeviceMountableVolumePlugin](t)(c.manager.FindDeviceMountablePluginByName(name))
	if err := must[volume.Unmounter](t)(plugin.NewUnmounter("pv1", "uid1")).TearDown(); err != nil {
		t.Fatal(err)
	}
	if err := must[volume.DeviceUnmounter](t)(plugin.NewDeviceUnmounter()).UnmountDevice(deviceDir(t, c)); err != nil {
		t.Fatal(err)
	}
}

func TestVolumesAttachedByNodeAreDetachedAfterRestart(t *testing.T) {
	c := start(t, nil, "", "")
	mounter := attach(t, c)
	c = start(t, c, "", "")
	c.calls()
	release(t, c)
	want := []string{"unmount " + mounter.GetPath(), "unmountdevice " + deviceDir(t, c), "detach disk~7 " + nodeName}
	if diff := cmp.Diff(want, c.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if remaining := c.attachments.list(); len(remaining) > 0 {
		t.Errorf("remaining: %v", remaining)
	}
}

func TestVolumesAttachedByThisProcessAreDetachedByKubelet(t *testing.T) {
	c := start(t, nil, "", "")
	mounter := attach(t, c)
	c.calls()
	release(t, c)
	if diff := cmp.Diff([]string{"unmount " + mounter.GetPath(), "unmountdevice " + deviceDir(t, c)}, c.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestUnusedVolumesAreDetachedBeforeKubeletStarts(t *testing.T) {
	c := start(t, nil, "", "")
	spec := pv(nil)
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	must[string](t)(must[volume.Attacher](t)(plugin.NewAttacher()).Attach(spec, nodeName))
	c = start(t, c, "", "")
	c.calls()
	componenttest.Run(t, (&DeviceCleanup{Registry: c.registry, KubeletRoot: c.root, Attachments: c.attachments}).Run)
	if diff := cmp.Diff([]string{"detach disk~7 " + nodeName}, c.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestVolumeLostInCrashIsDetached(t *testing.T) {
	for _, test := range []struct {
		name     string
		inStatus []corev1.AttachedVolume
		want     []string
	}{
		{"not in the node's status", nil, []string{"detach disk~7 " + nodeName}},
		{"in the node's status", []corev1.AttachedVolume{{Name: name + "/disk~7"}}, []string{""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, nil, "", "")
			spec := pv(nil)
			plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
			must[string](t)(must[volume.Attacher](t)(plugin.NewAttacher()).Attach(spec, nodeName))
			c = start(t, c, "", "")
			c.calls()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Status: corev1.NodeStatus{VolumesAttached: test.inStatus}}
			componenttest.Run(t, (&DetachRecovery{Client: fake.NewSimpleClientset(node), Registry: c.registry, Attachments: c.attachments}).Run)
			if diff := cmp.Diff(test.want, c.calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// run returns a driver call that returns err.
func run(err error) func(context.Context) error { return func(context.Context) error { return err } }

func TestVolumeIsNotDetachedAfterItIsAttachedAgain(t *testing.T) {
	dir := t.TempDir()
	c := call{attachment: attachment{driver: name, node: nodeName, volume: "disk~7"}, timeout: time.Minute}
	if err := (&Attachments{Dir: dir}).attach(c, run(nil)); err != nil {
		t.Fatal(err)
	}
	attachments := &Attachments{Dir: dir}
	if complete, err := attachments.detachStale(t.Context(), c, run(context.DeadlineExceeded)); complete || err == nil {
		t.Errorf("a failed detach: complete %v, error %v", complete, err)
	}
	if err := attachments.attach(c, run(nil)); err != nil {
		t.Errorf("the volume cannot be attached after a failed detach: %v", err)
	}
	detach := func(context.Context) error { t.Error("detached"); return nil }
	if complete, err := attachments.detachStale(t.Context(), c, detach); !complete || err != nil {
		t.Errorf("an attached volume: complete %v, error %v", complete, err)
	}
}

func TestExclusiveVolumeIsAttachedToOneNode(t *testing.T) {
	dir := t.TempDir()
	first := call{attachment: attachment{driver: name, node: "first", volume: "disk"}, exclusive: true, timeout: time.Minute}
	second := first
	second.node = "second"
	// Despite the error, the driver might have attached the volume.
	if err := (&Attachments{Dir: dir}).attach(first, run(context.DeadlineExceeded)); err == nil {
		t.Fatal("no error")
	}
	attachments := &Attachments{Dir: dir}
	err := attachments.attach(second, func(context.Context) error { t.Error("the driver was called"); return nil })
	if elsewhere := (elsewhereError{}); !errors.As(err, &elsewhere) || !slices.Equal(elsewhere.nodes, []string{"first"}) {
		t.Errorf("while the volume might be attached to the first node: %v", err)
	}
	shared := second
	shared.exclusive = false
	if err := errors.Join(attachments.attach(shared, run(nil)), attachments.detach(shared, run(nil))); err != nil {
		t.Errorf("a volume that several nodes may use: %v", err)
	}
	if err := errors.Join(attachments.detach(first, run(nil)), attachments.attach(second, run(nil))); err != nil {
		t.Errorf("after the detach: %v", err)
	}
}

func TestDetachIsIncompleteWhileRecordRemains(t *testing.T) {
	attachments := &Attachments{Dir: t.TempDir()}
	c := call{attachment: attachment{driver: name, node: nodeName, volume: "disk~7"}, timeout: time.Minute}
	obstacle := filepath.Join(directory(attachments.Dir).path(c.attachment), "file")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	if complete, err := attachments.detachStale(t.Context(), c, run(nil)); complete || err == nil {
		t.Errorf("while the record cannot be removed: complete %v, error %v", complete, err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if complete, err := attachments.detachStale(t.Context(), c, run(nil)); !complete || err != nil {
		t.Errorf("when the record can be removed: complete %v, error %v", complete, err)
	}
	if attachments.isRecorded(c.attachment) {
		t.Error("the record still exists")
	}
}

func TestRecordIsRemovedIfDriverDoesNotHaveAttachment(t *testing.T) {
	c := start(t, nil, "", "")
	spec := pv(nil)
	attacher := must[volume.Attacher](t)(must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec)).NewAttacher())
	must[string](t)(attacher.Attach(spec, nodeName))
	if attached := must[map[*volume.Spec]bool](t)(attacher.VolumesAreAttached([]*volume.Spec{spec}, nodeName)); attached[spec] {
		t.Error("the volume is attached")
	}
	if remaining := c.attachments.list(); len(remaining) > 0 {
		t.Errorf("remaining: %v", remaining)
	}
}

func TestAttachedVolumeIsDetachableAfterDriverDropsAttach(t *testing.T) {
	c := start(t, nil, "", tmpfsMount)
	spec := pv(nil)
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	must[string](t)(must[volume.Attacher](t)(plugin.NewAttacher()).Attach(spec, nodeName))
	c.install(`"attach":false`, tmpfsMount)
	other := pv(map[string]string{"other": "volume"})
	eventually.True(t, "other volumes are no longer attachable", func() bool {
		return must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(other)) == nil
	})
	if attachable := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec)); attachable == nil {
		t.Fatal("the attached volume is not attachable, so upstream would never detach it")
	}
	if err := must[volume.Detacher](t)(plugin.NewDetacher()).Detach("disk~7", nodeName); err != nil {
		t.Fatal(err)
	}
	if reattachable := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec)); reattachable != nil {
		t.Error("the detached volume is still attachable")
	}
}

// After a restart, the kubelet mounts existing volumes again. A volume that is already mounted does
// not need a driver.
func TestRestartWithVolumesOfRemovedDriver(t *testing.T) {
	c := start(t, nil, "", "")
	mounter := attach(t, c)
	before := c.mounts()
	if err := os.RemoveAll(filepath.Dir(c.path)); err != nil {
		t.Fatal(err)
	}
	c = start(t, c, "", "")
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginByName(name)).(volume.AttachableVolumePlugin)
	spec := must[volume.ReconstructedVolume](t)(plugin.ConstructVolumeSpec("pv1", mounter.GetPath())).Spec
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	must[string](t)(attacher.WaitForAttach(spec, "", nil, time.Minute))
	if err := attacher.MountDevice(spec, "", deviceDir(t, c), volume.DeviceMounterArgs{}); err != nil {
		t.Error(err)
	}
	if err := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1"))).SetUp(volume.MounterArgs{}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, c.mounts()); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

// The in-tree plugin ignores the driver's response to getvolumename.
func TestDeviceOfInTreePluginIsFound(t *testing.T) {
	c := start(t, nil, "", "")
	dir := filepath.Join(c.root, "plugins", "kubernetes.io", "flexvolume", "example.com", "test", "mounts", "old")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	plugin := must[volume.VolumePlugin](t)(c.manager.FindPluginByName(name)).(volume.AttachableVolumePlugin)
	rebuilt := must[volume.ReconstructedVolume](t)(plugin.ConstructVolumeSpec("old", filepath.Join(c.root, "pods", "uid2", "volumes", "example.com~test", "old")))
	if got := must[string](t)(must[volume.Attacher](t)(plugin.NewAttacher()).GetDeviceMountPath(rebuilt.Spec)); got != dir {
		t.Errorf("directory %s, want %s", got, dir)
	}
	if err := must[volume.Detacher](t)(plugin.NewDetacher()).UnmountDevice(dir); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(plugin.GetVolumeName(rebuilt.Spec)); got != "disk~7" {
		t.Errorf("after the device was unmounted, the name is %q", got)
	}
}
