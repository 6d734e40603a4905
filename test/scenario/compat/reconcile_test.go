package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/test/kit"
)

const (
	roleResource       = "clusterroles.rbac.authorization.k8s.io"
	bindingResource    = "clusterrolebindings.rbac.authorization.k8s.io"
	constraintResource = "securitycontextconstraints"
)

// snapshot returns the content of all objects of a resource, keyed by name. It ignores the order of
// rules.
func snapshot(t *testing.T, c *kit.Cluster, resource string) map[string]string {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(c.OC("get", resource, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	objects := map[string]string{}
	for _, item := range list.Items {
		metadata := item["metadata"].(map[string]any)
		var rules []string
		if list, ok := item["rules"].([]any); ok {
			for _, rule := range list {
				rules = append(rules, fmt.Sprint(rule))
			}
		}
		slices.Sort(rules)
		delete(item, "rules")
		item["metadata"] = map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
		objects[metadata["name"].(string)] = fmt.Sprintln(item) + strings.Join(rules, "\n")
	}
	return objects
}

// unremovable contains the name prefixes of roles without which the platform's components cannot
// work.
var unremovable = []string{"system:controller:", "system:kube-", "system:node", "system:slipway-", "system:public", "system:discovery"}

func TestReconciliationRestoresDefaultsOfNewCluster(t *testing.T) {
	c := kit.Shared(t)
	before := map[string]map[string]string{}
	for _, resource := range []string{roleResource, bindingResource, constraintResource} {
		before[resource] = snapshot(t, c, resource)
		var names []string
		for name := range before[resource] {
			if !slices.ContainsFunc(unremovable, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				names = append(names, name)
			}
		}
		c.OC(append([]string{"delete", resource, "--wait=false"}, names...)...)
	}
	c.OC("adm", "policy", "reconcile-cluster-roles", "--confirm")
	c.OC("adm", "policy", "reconcile-cluster-role-bindings", "--confirm")
	c.OC("adm", "policy", "reconcile-sccs", "--confirm")
	for resource, want := range before {
		// Wait until a controller has filled in the aggregated roles.
		c.WaitFor("defaults of "+resource, func(context.Context) error {
			if diff := cmp.Diff(want, snapshot(t, c, resource)); diff != "" {
				return fmt.Errorf("-new cluster +now:\n%s", diff)
			}
			return nil
		})
	}
	for _, command := range []string{"reconcile-cluster-roles", "reconcile-cluster-role-bindings", "reconcile-sccs"} {
		if got := c.OC("adm", "policy", command); got != "" {
			t.Errorf("%s still has changes:\n%s", command, got)
		}
	}
}
