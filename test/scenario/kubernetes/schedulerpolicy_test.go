package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// setPolicy writes the scheduler's policy file, and waits until the scheduler's effective
// configuration contains the given text.
func setPolicy(t *testing.T, c *kit.Cluster, content, effect string) {
	t.Helper()
	writePolicy(t, c, content)
	c.WaitFor("effect of scheduler.json", func(context.Context) error {
		text, err := os.ReadFile(c.Path("run", "scheduler.yaml"))
		if err == nil && !strings.Contains(string(text), effect) {
			err = fmt.Errorf("%q is missing in %d bytes", effect, len(text))
		}
		return err
	})
}

func writePolicy(t *testing.T, c *kit.Cluster, content string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(c.MasterFile()), "scheduler.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// standardScheduler is a configuration with Kubernetes' default rules, and with an additional
// setting that shows whether the configuration is in effect.
const standardScheduler = "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\npodMaxBackoffSeconds: 11\n"

// TestSchedulerFollowsPolicyFile uses the rules in the guide's last sample policy, and replaces the
// policy while the cluster runs.
func TestSchedulerFollowsPolicyFile(t *testing.T) {
	c := kit.Shared(t)
	t.Cleanup(func() { setPolicy(t, c, standardScheduler, "podMaxBackoffSeconds: 11") })
	addNode(t, c, "a1", map[string]string{"region": "r1", "zone": "z1"})
	addNode(t, c, "a2", map[string]string{"region": "r1", "zone": "z2"})
	addNode(t, c, "a3", map[string]string{"region": "r1", "zone": "z2", "building": "b1"})
	addNode(t, c, "b1", map[string]string{"region": "r2", "zone": "z3"})
	setPolicy(t, c, `{
	"kind": "Policy",
	"apiVersion": "v1",
	"predicates": [
		{"name": "RegionAffinity", "argument": {"serviceAffinity": {"labels": ["region"]}}},
		{"name": "RequireRegion", "argument": {"labelsPresence": {"labels": ["region"], "presence": true}}},
		{"name": "BuildingNodesAvoid", "argument": {"labelsPresence": {"labels": ["building"], "presence": false}}},
		{"name": "PodFitsPorts"},
		{"name": "MatchNodeSelector"}
	],
	"priorities": [
		{"name": "ZoneSpread", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "zone"}}},
		{"name": "ZonePreferred", "weight": 1, "argument": {"labelPreference": {"label": "zone", "presence": true}}},
		{"name": "ServiceSpreadingPriority", "weight": 1}
	]
}`, "predicates.RegionAffinity")
	c.OC("create", "service", "clusterip", "web", "--tcp=80")
	c.OC("set", "selector", "service/web", "tier=web")
	place := func(name, field, want string) {
		t.Helper()
		makePod(t, c, strings.Replace(pod(name, sleeper(), field), "{app: ", "{tier: web, app: ", 1))
		wantPlace(t, c, name, want)
	}
	place("first", "nodeSelector: {zone: z1}", "a1")
	place("second", "", "a2") // in the first pod's region, in another zone, without a building
	place("building", "nodeSelector: {building: b1}", "")
	waitEvent(c, c.Namespace, "building", "FailedScheduling", "node(s) have the label building")

	writePolicy(t, c, "kind: Policy\napiVersion: v1\npredicates:\n- name: PodFitsResource\n")
	c.WaitFor("note about the invalid policy", func(context.Context) error {
		if text := c.MustSlipway("status"); !strings.Contains(text, "scheduler.json:4: predicates[0].name: is \"PodFitsResource\"") {
			return fmt.Errorf("the status has no note")
		}
		return nil
	})
	place("east", "nodeSelector: {zone: z1}", "a1") // the previous policy must remain in effect
	place("west", "nodeSelector: {region: r2}", "b1")
}
