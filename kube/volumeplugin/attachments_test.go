package volumeplugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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

// TestVolumeOfLostMasterIsDetached loses the record directory of the master that has attached a
// volume.
func TestVolumeOfLostMasterIsDetached(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	client := fake.NewClientset(node)
	failures := 0
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		failures++
		return failures == 1, nil, errors.New("no leader")
	})
	lost := &Attachments{Dir: t.TempDir(), Shared: &SharedRecords{Client: client}}
	a := attachment{driver: name, node: nodeName, volume: "disk~7"}
	for range 2 { // upstream repeats a failed attach
		if err := lost.add(a); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, nil, "", "")
	c.calls()
	other := &Attachments{Dir: t.TempDir(), Shared: &SharedRecords{Client: client}}
	componenttest.Run(t, (&DetachRecovery{Client: client, Registry: c.registry, Attachments: other}).Run)
	if diff := cmp.Diff([]string{"detach disk~7 " + nodeName}, c.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if remaining, err := other.Shared.list(t.Context()); len(remaining) > 0 || err != nil {
		t.Errorf("remaining: %v, %v", remaining, err)
	}
	if err := errors.Join(other.add(a), other.remove(a), other.remove(a)); err != nil {
		t.Errorf("attach and detach again: %v", err)
	}
}

func TestVolumeIsNotAttachedDuringRecovery(t *testing.T) {
	attachments := &Attachments{Dir: t.TempDir()}
	a := attachment{driver: name, node: nodeName, volume: "disk~7"}
	if err := attachments.add(a); err != nil {
		t.Fatal(err)
	}
	attachments = &Attachments{Dir: attachments.Dir}
	done, err := attachments.detachStale(a, func() error {
		if err := attachments.add(a); err == nil {
			t.Error("the volume was attached during the detach")
		}
		return context.DeadlineExceeded
	})
	if done || err == nil {
		t.Errorf("done %v, error %v", done, err)
	}
	if err := attachments.add(a); err != nil {
		t.Errorf("the volume cannot be attached after a failed detach: %v", err)
	}
	if done, err := attachments.detachStale(a, func() error { t.Error("detached"); return nil }); !done || err != nil {
		t.Errorf("an attached volume: done %v, error %v", done, err)
	}
}

func TestDetachIsIncompleteWhileRecordRemains(t *testing.T) {
	attachments := &Attachments{Dir: t.TempDir()}
	a := attachment{driver: name, node: nodeName, volume: "disk~7"}
	obstacle := filepath.Join(attachments.recordPath(a), "file")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	detach := func() error { return nil }
	if complete, err := attachments.detachStale(a, detach); complete || err == nil {
		t.Errorf("while the record cannot be removed: complete %v, error %v", complete, err)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	if complete, err := attachments.detachStale(a, detach); !complete || err != nil {
		t.Errorf("when the record can be removed: complete %v, error %v", complete, err)
	}
	if attachments.isRecorded(a) {
		t.Error("the record still exists")
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
}
