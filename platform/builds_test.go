package platform

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/config"
)

func TestDecisionsAboutBuildsFollowTheConfiguration(t *testing.T) {
	read := func(plugins string) (*config.Config, error) {
		file := filepath.Join(t.TempDir(), "master-config.yaml")
		if err := os.WriteFile(file, []byte(header+"admissionConfig: {pluginConfig: {"+plugins+"}}"), 0o600); err != nil {
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
		decided, err := buildDecisions(c)
		if err != nil || decided.Defaults.GitHTTPProxy != want.proxy || decided.Overrides.ForcePull != want.pull {
			t.Errorf("%q means %+v, %v", plugins, decided, err)
		}
	}
	c, err := read("BuildOverrides: {configuration: {apiVersion: v1, kind: BuildOverridesConfig, forcePul: true}}")
	if err == nil {
		_, err = buildDecisions(c)
	}
	if err == nil {
		t.Error("a setting that does not exist is accepted")
	}
}

// What can be adjusted is known when the part that follows the files is made.
func TestTheConfigurationIsFollowedByAllPartsBeforeIt(t *testing.T) {
	rows := controlPlaneTable()
	if last := rows[len(rows)-1].name; last != "configuration" {
		t.Errorf("the last part of the control plane is %s", last)
	}
}
