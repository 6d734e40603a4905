package flexvolume

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/volume"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	engine "github.com/slipway-platform/slipway/storage/flexvolume"
)

func TestAProbeWithoutAChangeReportsNone(t *testing.T) {
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

func TestPluginsAndProbedDriversAreFoundInOneManager(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	host := volumetesting.NewFakeVolumeHostWithCSINodeName(t, c.root, c.objects, nil, nodeName, nil, nil)
	manager := &volume.VolumePluginMgr{}
	builtIn := &volumetesting.FakeVolumePlugin{PluginName: "example.com/built-in"}
	if err := manager.InitPlugins([]volume.VolumePlugin{builtIn}, NewProber(c.registry, Options{}), host); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"example.com/built-in", name} {
		if found, err := manager.FindPluginByName(want); err != nil || found.GetPluginName() != want {
			t.Errorf("find %q: %v", want, err)
		}
	}
	if _, err := engine.Remove(filepath.Dir(filepath.Dir(c.path)), name); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the removed driver is not offered", func() bool {
		if e, known := c.registry.Lookup(name); known && e.State == engine.StateRemoved {
			if err := c.registry.Forget(name); err != nil {
				t.Fatal(err)
			}
		}
		_, err := manager.FindPluginByName(name)
		return err != nil
	})
	if _, err := manager.FindPluginByName("example.com/built-in"); err != nil {
		t.Errorf("the plug-in beside it: %v", err)
	}
}

func TestARemovedDriverStaysWhilePodsAskForIt(t *testing.T) {
	c := start(t, nil, `"attach":false`, "")
	host := volumetesting.NewFakeVolumeHostWithCSINodeName(t, c.root, c.objects, nil, nodeName, nil, nil)
	manager, p := &volume.VolumePluginMgr{}, NewProber(c.registry, Options{InUse: func(string) bool { return false }}).(*prober)
	if err := manager.InitPlugins(nil, p, host); err != nil {
		t.Fatal(err)
	}
	spec := inline("data", "")
	found := func() bool {
		p.looked = time.Time{} // as if the interval had passed
		_, err := manager.FindPluginBySpec(spec)
		return err == nil
	}
	if !found() {
		t.Fatal("the driver is not found")
	}
	if _, err := engine.Remove(filepath.Dir(filepath.Dir(c.path)), name); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the driver is removed", func() bool {
		e, known := c.registry.Lookup(name)
		return known && e.State == engine.StateRemoved && found()
	})
	for range 100 {
		if !found() {
			t.Fatal("it is forgotten while somebody asks for it")
		}
	}
	p.known[name].asked.Store(0) // as if nobody had asked for long
	if found() {
		t.Error("it is not forgotten")
	}
}
