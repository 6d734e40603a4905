package application

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// setBuildDefaults sets environment variables for all builds in the running cluster, until the test
// ends.
func setBuildDefaults(t *testing.T, c *kit.Cluster, variables map[string]string) {
	t.Helper()
	before, err := os.ReadFile(c.MasterFile())
	if err != nil {
		t.Fatal(err)
	}
	var master map[string]any
	if err := yaml.Unmarshal(before, &master); err != nil {
		t.Fatal(err)
	}
	var env []map[string]string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, map[string]string{"name": name, "value": variables[name]})
	}
	defaults := map[string]any{"apiVersion": "v1", "kind": "BuildDefaultsConfig", "env": env}
	master["admissionConfig"] = map[string]any{"pluginConfig": map[string]any{"BuildDefaults": map[string]any{"configuration": defaults}}}
	changed, err := yaml.Marshal(master)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(content []byte) {
		t.Helper()
		const done = "applied changed configuration"
		changes := func() int {
			return strings.Count(c.MustSlipway("logs", "control-plane", "--tail=-1", "--grep="+done), done)
		}
		earlier := changes()
		if err := os.WriteFile(c.MasterFile(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		c.WaitFor("the changed configuration", func(context.Context) error {
			if changes() == earlier {
				return fmt.Errorf("the configuration has no effect yet")
			}
			return nil
		})
	}
	t.Cleanup(func() { apply(before) })
	apply(changed)
}
