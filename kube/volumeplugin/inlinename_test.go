package volumeplugin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"
)

// startNaming starts a manager whose driver returns a name, or no name if volumeName is empty.
func startNaming(t *testing.T, volumeName string) *cluster {
	t.Helper()
	c := start(t, nil, "", "")
	script := must[[]byte](t)(os.ReadFile(c.path))
	if err := os.WriteFile(c.path, bytes.Replace(script, []byte("disk/7"), []byte(volumeName), 1), 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

// The name that the driver returns identifies the volume, even if it is equal to the volume's name
// in the pod.
func TestNameOfDriverIsNotReplaced(t *testing.T) {
	c := startNaming(t, "data")
	spec := inline("data", "s")
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	if got := must[string](t)(plugin.GetVolumeName(spec)); got != "data" {
		t.Errorf("name %q", got)
	}
}

// Earlier versions named an inline volume after the volume in the pod. The controller does not use
// these names after an upgrade, so the kubelet must not use them for the next pod.
func TestEarlierNameIsUsedUntilDeviceIsUnmounted(t *testing.T) {
	c := startNaming(t, "")
	spec := inline("data", "s")
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	want := must[string](t)(plugin.GetVolumeName(spec))
	record := filepath.Join(c.root, "pods", "uid1", "plugins", "example.com~test", "data.json")
	if err := os.MkdirAll(filepath.Dir(record), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, []byte(`{"persistent":false,"name":"data"}`), 0o600); err != nil {
		t.Fatal(err)
	}

	c = start(t, c, "", "")
	plugin = must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec))
	_ = must[volume.ReconstructedVolume](t)(plugin.ConstructVolumeSpec("data", filepath.Join(c.root, "pods", "uid1", "volumes", "example.com~test", "data")))
	attacher := must[volume.Attacher](t)(plugin.NewAttacher())
	dir := must[string](t)(attacher.GetDeviceMountPath(spec))
	if err := attacher.MountDevice(spec, "/dev/x", dir, volume.DeviceMounterArgs{}); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(plugin.GetVolumeName(spec)); got != "data" {
		t.Errorf("while the device is mounted, the name is %q", got)
	}
	if err := must[volume.Detacher](t)(plugin.NewDetacher()).UnmountDevice(dir); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(plugin.GetVolumeName(spec)); got != want {
		t.Errorf("after the device was unmounted, the name is %q, want %q", got, want)
	}
}

// A pod's author chooses the name of an inline volume. If the driver does not name volumes, this
// name must not give the pod the device of another volume.
func TestInlineVolumeDoesNotGetDeviceOfOtherVolume(t *testing.T) {
	c := startNaming(t, "")
	plugin := must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(pv(nil)))
	withOptions := func(options map[string]string) *volume.Spec {
		spec := inline("pv1", "s")
		spec.Volume.FlexVolume.FSType, spec.Volume.FlexVolume.Options = "ext4", options
		return spec
	}
	names := map[string]bool{}
	specs := []*volume.Spec{pv(nil), withOptions(nil), withOptions(map[string]string{"id": "1"}), withOptions(map[string]string{"id": "2"})}
	for _, spec := range specs {
		names[must[string](t)(plugin.GetVolumeName(spec))] = true
	}
	if len(names) != len(specs) {
		t.Errorf("%d volumes have the names %v", len(specs), names)
	}
	if !names["pv1"] {
		t.Errorf("the PersistentVolume has another name: %v", names)
	}
	// In detach, the driver must receive the same name as in attach.
	spec, node := specs[1], types.NodeName(nodeName)
	name := must[string](t)(plugin.GetVolumeName(spec))
	c.calls()
	_ = must[string](t)(must[volume.Attacher](t)(plugin.NewAttacher()).Attach(spec, node))
	if err := must[volume.Detacher](t)(plugin.NewDetacher()).Detach(name, node); err != nil {
		t.Fatal(err)
	}
	calls := c.calls()
	if len(calls) != 2 || !strings.Contains(calls[0], `"kubernetes.io/pvOrVolumeName":"`+name+`"`) || !strings.HasPrefix(calls[1], "detach "+name+" ") {
		t.Errorf("calls %q", calls)
	}
}
