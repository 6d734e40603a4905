package volumeplugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/kubernetes/pkg/volume/util"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func TestProbeReportsChangesOnly(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	probe := func(prober volume.DynamicPluginProber) (added []string) {
		t.Helper()
		events, err := prober.Probe()
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if event.Op != volume.ProbeAddOrUpdate {
				t.Errorf("%s is removed", event.PluginName)
			}
			added = append(added, event.PluginName)
		}
		return added
	}
	prober := NewProber(c.registry, Options{})
	if got := probe(prober); len(got) != 2 || got[0] != pluginDirName {
		t.Fatalf("the first probe reports %q", got)
	}
	for range 1000 {
		if got := probe(prober); got != nil {
			t.Fatalf("a probe without a change reports %q", got)
		}
	}
	other := *c
	other.path = filepath.Join(filepath.Dir(filepath.Dir(c.path)), "example.com~other", "other")
	other.install(`"attach":false`, "")
	eventually.True(t, "the change is reported", func() bool {
		got := probe(prober)
		return len(got) == 1 && got[0] == "example.com/other"
	})
	if got := probe(prober); got != nil {
		t.Errorf("the change is reported twice: %q", got)
	}
}

func TestStaticAndProbedPluginsInOneManager(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	host := volumetesting.NewFakeVolumeHostWithCSINodeName(t, c.root, c.objects, nil, nodeName, nil, nil)
	manager := &volume.VolumePluginMgr{}
	builtIn := &volumetesting.FakeVolumePlugin{PluginName: "example.com/built-in"}
	if err := manager.InitPlugins([]volume.VolumePlugin{builtIn}, NewProber(c.registry, Options{}), host); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.com/built-in", name} {
		if plugin, err := manager.FindPluginByName(want); err != nil || plugin.GetPluginName() != want {
			t.Errorf("find %q: %v", want, err)
		}
	}
	if _, err := flexvolume.Remove(filepath.Dir(filepath.Dir(c.path)), name); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "removal of the driver's plugin", func() bool {
		if e, ok := c.registry.Lookup(name); ok && e.State == flexvolume.StateRemoved {
			if err := c.registry.Forget(name); err != nil {
				t.Fatal(err)
			}
		}
		_, err := manager.FindPluginByName(name)
		return err != nil
	})
	if _, err := manager.FindPluginByName("example.com/built-in"); err != nil {
		t.Errorf("the other plugin: %v", err)
	}
}

func TestRemovedDriverIsKeptWhilePodsWait(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	host := volumetesting.NewFakeVolumeHostWithCSINodeName(t, c.root, c.objects, nil, nodeName, nil, nil)
	manager, p := &volume.VolumePluginMgr{}, NewProber(c.registry, Options{InUse: func(string) bool { return false }}).(*prober)
	if err := manager.InitPlugins(nil, p, host); err != nil {
		t.Fatal(err)
	}
	spec := inline("data", "")
	exists := func() bool {
		p.lastCheck = time.Time{} // simulate that the interval has elapsed
		plugin, err := manager.FindPluginBySpec(spec)
		return err == nil && plugin.GetPluginName() == name
	}
	if !exists() {
		t.Fatal("the driver is not found")
	}
	if _, err := flexvolume.Remove(filepath.Dir(filepath.Dir(c.path)), name); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the driver is removed", func() bool {
		e, ok := c.registry.Lookup(name)
		return ok && e.State == flexvolume.StateRemoved && exists()
	})
	for range 100 {
		if !exists() {
			t.Fatal("the driver is deleted while a pod waits for it")
		}
	}
	p.plugins[name].lastUse.Store(0) // simulate that no pod has waited for a long time
	if exists() {
		t.Error("the driver is not deleted")
	}
}

func TestErrorExplainsUnavailableDriver(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	dir := filepath.Dir(filepath.Dir(c.path))
	for driver, script := range map[string]string{
		"example.com~fails": "#!/bin/sh\necho '{\"status\":\"Failure\",\"message\":\"no license\"}'; exit 1\n",
		"example.com~hangs": "#!/bin/sh\nsleep 1000\n",
		"example.com~noise": "#!/bin/sh\necho hello\n",
	} {
		path := filepath.Join(dir, driver, strings.TrimPrefix(driver, "example.com~"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for driver, reason := range map[string]string{
		"example.com/fails":  "no license",
		"example.com/hangs":  "its init is still running",
		"example.com/noise":  "no JSON",
		"example.com/absent": "it is not installed; install it as " + dir,
	} {
		spec := &volume.Spec{Volume: &corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: driver}}}}
		eventually.True(t, "the reason of "+driver, func() bool {
			plugin, err := c.manager.FindPluginBySpec(spec)
			if err != nil {
				t.Fatal(err)
			}
			if !util.IsAttachableVolume(spec, c.manager) {
				t.Fatal("the kubelet would not request the name of the volume")
			}
			_, err = util.GetUniqueVolumeNameFromSpec(plugin, spec)
			return err != nil && strings.Contains(err.Error(), reason) && strings.Contains(err.Error(), driver) && strings.Contains(err.Error(), nodeName)
		})
	}
}

func TestUnavailableDriverIsUsedOnceItWorks(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	spec := &volume.Spec{Volume: &corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: name}}}}
	eventually.True(t, "the driver's own plugin is found", func() bool {
		plugin, err := c.manager.FindPluginBySpec(spec)
		return err == nil && plugin.GetPluginName() == name
	})
}
