package flexvolume

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/volume"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"

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
	if got := probe(prober); len(got) != 1 {
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
	eventually.True(t, "the removed driver is not offered", func() bool {
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

func TestRemovedDriverStaysWhilePodsWait(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	host := volumetesting.NewFakeVolumeHostWithCSINodeName(t, c.root, c.objects, nil, nodeName, nil, nil)
	manager, p := &volume.VolumePluginMgr{}, NewProber(c.registry, Options{InUse: func(string) bool { return false }}).(*prober)
	if err := manager.InitPlugins(nil, p, host); err != nil {
		t.Fatal(err)
	}
	spec := inline("data", "")
	exists := func() bool {
		p.lastCheck = time.Time{} // simulate that the interval has elapsed
		_, err := manager.FindPluginBySpec(spec)
		return err == nil
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
			t.Fatal("it is forgotten while a pod waits for it")
		}
	}
	p.plugins[name].lastUse.Store(0) // simulate that no pod has waited for a long time
	if exists() {
		t.Error("it is not forgotten")
	}
}
