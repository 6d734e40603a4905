package volumeplugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/internal/componenttest"
)

func TestUnusedDeviceIsUnmountedBeforeKubeletStarts(t *testing.T) {
	c := start(t, nil, "", "")
	spec := pv(nil)
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	dir := must[string](t)(attacher.GetDeviceMountPath(spec))
	if err := attacher.MountDevice(spec, "/dev/x", dir, volume.DeviceMounterArgs{}); err != nil {
		t.Fatal(err)
	}
	mounter := must[volume.Mounter](t)(plugin.NewMounter(spec, pod("uid1")))
	if err := mounter.SetUp(volume.MounterArgs{}); err != nil {
		t.Fatal(err)
	}
	before := c.mounts()

	c = start(t, c, "", "")
	t.Run("mounted while a pod uses it", func(t *testing.T) {
		componenttest.Run(t, (&DeviceCleanup{Registry: c.registry, KubeletRoot: c.root, Attachments: c.attachments}).Run)
		if diff := cmp.Diff(before, c.mounts()); diff != "" {
			t.Errorf("mounts (-want +got):\n%s", diff)
		}
	})
	second := must[volume.VolumePlugin](t)(c.manager.FindPluginByName(name))
	if err := must[volume.Unmounter](t)(second.NewUnmounter("pv1", "uid1")).TearDown(); err != nil {
		t.Fatal(err)
	}
	c.calls()
	t.Run("unmounted when no pod uses it", func(t *testing.T) {
		componenttest.Run(t, (&DeviceCleanup{Registry: c.registry, KubeletRoot: c.root, Attachments: c.attachments}).Run)
		if remaining := c.mounts(); len(remaining) > 0 {
			t.Errorf("left mounted: %v", remaining)
		}
		if diff := cmp.Diff([]string{"unmountdevice " + dir}, c.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}
