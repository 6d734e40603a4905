package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChangesNameKeys(t *testing.T) {
	load := func(master, node string) *Config {
		t.Helper()
		dir := t.TempDir()
		file := filepath.Join(dir, "both.yaml")
		content := "apiVersion: v1\nkind: MasterConfig\n" + master +
			"\n---\napiVersion: v1\nkind: NodeConfig\nnodeName: a\n" + node + "\n"
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load("/data", file)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := load("projectConfig: {projectRequestMessage: a}", "")
	after := load(`
projectConfig: {projectRequestMessage: b}
admissionConfig:
  pluginConfig:
    RunOnceDuration:
      configuration: {apiVersion: v1, kind: RunOnceDurationConfig, activeDeadlineSecondsOverride: 5}
networkConfig: {externalIPNetworkCIDRs: [10.1.0.0/16]}
`, "volumeDirectory: /volumes")
	got, err := Changes(before, after)
	if err != nil {
		t.Fatal(err)
	}
	plugin := "admissionConfig.pluginConfig.RunOnceDuration."
	want := []string{
		plugin + "configuration.activeDeadlineSecondsOverride", plugin + "configuration.apiVersion",
		plugin + "configuration.kind", plugin + "location",
		"networkConfig.externalIPNetworkCIDRs", "projectConfig.projectRequestMessage", "NodeConfig: volumeDirectory",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if same, err := Changes(before, before); err != nil || len(same) != 0 {
		t.Errorf("comparing a configuration with itself: got %v, %v, want no changes", same, err)
	}
	if !Below("a.b.c", []string{"a.b"}) || Below("a.bc", []string{"a.b"}) {
		t.Error("the key does not belong to the block")
	}
}

func TestLoadAnywayReturnsDecodedPart(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{
		MasterFile(dir): "{",
		NodeFile(dir):   "{apiVersion: v1, kind: NodeConfig, slipway: {runDirectory: /run/elsewhere}}",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := LoadAnyway(dir, "")
	if err == nil || c == nil || c.Node.Slipway.RunDirectory != "/run/elsewhere" ||
		c.Master.ServingInfo.BindAddress == "" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Load(dir, ""); err == nil || c != nil {
		t.Errorf("Load: %v, %v, want an error and no configuration", c, err)
	}
}
