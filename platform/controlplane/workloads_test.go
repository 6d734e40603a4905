package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/config"
)

func TestBuildSettingsFollowConfiguration(t *testing.T) {
	read := func(plugins string) (*config.Config, error) {
		file := filepath.Join(t.TempDir(), "master-config.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: v1\nkind: MasterConfig\nadmissionConfig: {pluginConfig: {"+plugins+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load("/data", file)
	}
	const proxy = `BuildDefaults: {configuration: {apiVersion: v1, kind: BuildDefaultsConfig, gitHTTPProxy: "http://proxy"}}`
	const pull = `BuildOverrides: {configuration: {apiVersion: v1, kind: BuildOverridesConfig, forcePull: true}}`
	for plugins, want := range map[string]struct {
		proxy string
		pull  bool
	}{"": {"", false}, proxy: {"http://proxy", false}, proxy + ", " + pull: {"http://proxy", true}} {
		c, err := read(plugins)
		if err != nil {
			t.Fatal(err)
		}
		settings, err := buildSettings(c)
		if err != nil || settings.Defaults.GitHTTPProxy != want.proxy || settings.Overrides.ForcePull != want.pull {
			t.Errorf("%q: got %+v, %v", plugins, settings, err)
		}
	}
	c, err := read("BuildOverrides: {configuration: {apiVersion: v1, kind: BuildOverridesConfig, forcePul: true}}")
	if err == nil {
		_, err = buildSettings(c)
	}
	if err == nil {
		t.Error("an unknown setting is accepted")
	}
}
