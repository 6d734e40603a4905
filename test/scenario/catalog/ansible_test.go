package catalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// refusedSpec is the apb.yml of a bundle that is never run.
const refusedSpec = `version: 1.0
name: rights-apb
description: Never runs
bindable: false
async: optional
plans:
- {name: default, description: The plan, free: true, parameters: [{name: count, type: int, required: true}]}
`

// relist makes the platform fetch the broker's catalog again, and waits until the catalog contains
// the given class.
func relist(c *kit.Cluster, class string) {
	const broker = "clusterservicebroker/ansible-service-broker"
	c.WaitFor("a request for the catalog", func(context.Context) error {
		text, err := c.TryOC("get", broker, "-o", "jsonpath={.spec.relistRequests}")
		if err != nil {
			return err
		}
		requests, _ := strconv.Atoi(text)
		_, err = c.TryOC("patch", broker, "--type=merge", "-p", fmt.Sprintf(`{"spec": {"relistRequests": %d}}`, requests+1))
		return err
	})
	c.WaitFor("class "+class, func(context.Context) error {
		if out := c.OC("get", "clusterserviceclasses", "--field-selector=spec.externalName="+class, "-o", "name"); out == "" {
			return fmt.Errorf("the class does not exist")
		}
		return nil
	})
}

// explain makes a failed test print the logs of the broker and its sandboxes.
func explain(t *testing.T, c *kit.Cluster) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, args := range [][]string{
			{"get", "serviceinstances,servicebindings", "-o", `jsonpath={range .items[*]}{.metadata.name}: {.status.conditions}{"\n"}{end}`},
			{"get", "pods", "-A", "-l", "apb-action", "-o", "wide"},
			{"get", "events", "-A", "-o", `custom-columns=NAMESPACE:.metadata.namespace,REASON:.reason,MESSAGE:.message`},
		} {
			out, err := c.TryOC(args...)
			lines := strings.Split(out, "\n")
			if args[1] == "events" {
				lines = slices.DeleteFunc(lines, func(line string) bool {
					return !strings.HasPrefix(line, "bundle-") && !strings.HasPrefix(line, c.Namespace)
				})
			}
			t.Logf("oc %s: %v\n%s", strings.Join(args[:2], " "), err, strings.Join(lines, "\n"))
		}
	})
}

// The bundle is a sample: an image with Ansible, and with playbooks that create a web server.
func TestPlaybookBundleIsProvisionedBoundAndDeprovisioned(t *testing.T) {
	c := kit.Shared(t)
	explain(t, c)
	c.BuildSample("hello-world-apb", "apb-base")
	c.OC("policy", "add-role-to-user", "edit", "alice")
	relist(c, "hello-world-apb")
	apply := func(manifest string) {
		t.Helper()
		if out, err := c.TryOCWithInput(manifest, "--as=alice", "--as-group=system:authenticated", "apply", "-f", "-"); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	if result := c.Slipway("catalog", "test", "hello-world-apb"); result.Code != 0 || !strings.Contains(result.Stdout, "The test of hello-world-apb succeeded.") {
		t.Errorf("the test of the bundle: %s%s", result.Stdout, result.Stderr)
	}
	order := func(name, parameters string) {
		t.Helper()
		apply(fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: %s}, spec: {
			clusterServiceClassExternalName: hello-world-apb, parameters: %s}}`, name, parameters))
	}
	order("wrong", "{replicas: many}")
	c.WaitFor("the rejection of a parameter", func(context.Context) error {
		if got := c.OC("get", "serviceinstance/wrong", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, "parameters.replicas: the value must be of type integer") {
			return fmt.Errorf("the conditions are %s", got)
		}
		return nil
	})
	c.OC("delete", "serviceinstance/wrong")

	const broker = "openshift-ansible-service-broker"
	changes := c.StartOC("get", "bundleinstances.automationbroker.io", "-n", broker, "--watch", "--output-watch-events", "-o", `jsonpath={.type} {.object.metadata.name}{"\n"}`)
	order("hello", "{greeting: Good <morning>}")
	wait(c, "serviceinstance/hello", "{.status.asyncOpInProgress} {.status.lastConditionState}", "false Ready")
	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: hello-binding}, spec: {instanceRef: {name: hello}}}`)
	wait(c, "servicebinding/hello-binding", "{.status.lastConditionState}", "Ready")
	address := strings.TrimSpace(c.OC("get", "secret/hello-binding", "-o", "go-template={{.data.uri | base64decode}}"))
	c.WaitVisit(address, "<h1>Good &lt;morning></h1>")
	wait(c, "serviceinstance/hello", "{.status.dashboardURL}", address)

	c.OC("patch", "serviceinstance/hello", "--type=merge", "-p", `{"spec": {"parameters": {"greeting": "Good evening"}}}`)
	c.WaitVisit(address, "<h1>Good evening</h1>")
	wait(c, "serviceinstance/hello", "{.status.asyncOpInProgress} {.status.lastConditionState}", "false Ready")
	id := c.OC("get", "serviceinstance/hello", "-o", "jsonpath={.spec.externalID}")
	bundle := c.OC("get", "bundleinstances.automationbroker.io", id, "-n", broker, "-o", "jsonpath={.spec.bundle.name}")
	for _, check := range []struct{ object, path, want string }{
		{"bundles.automationbroker.io/" + bundle, "{.spec.fqName}", "hello-world-apb"},
		{"bundleinstances.automationbroker.io/" + id, "{.spec.context.namespace} {.spec.dashboardUrl} {.status.state}", c.Namespace + " " + address + " succeeded"},
		{"bundlebindings.automationbroker.io", "{.items[*].spec.bundleInstance.name}", id},
	} {
		if got := c.OC("get", check.object, "-n", broker, "-o", "jsonpath="+check.path); got != check.want {
			t.Errorf("%s has %q, want %q", check.object, got, check.want)
		}
	}
	if out, err := c.TryOC("get", "bundleinstances.automationbroker.io", "-n", broker, "--as=alice", "--as-group=system:authenticated"); err == nil {
		t.Errorf("a user of a project can read the instances of all projects: %s", out)
	}
	c.OC("delete", "servicebinding/hello-binding")
	c.OC("delete", "serviceinstance/hello")
	for _, want := range []string{"ADDED", "MODIFIED", "DELETED"} {
		for line := ""; line != want+" "+id+"\n"; {
			var err error
			if line, err = changes.ReadString('\n'); err != nil {
				t.Fatalf("the watch of the instances has no event %s: %v", want, err)
			}
		}
	}
	if out := c.OC("get", "deployments,services,routes,configmaps", "-o", "name"); strings.Contains(out, "/hello-") {
		t.Errorf("objects of the bundle remain: %s", out)
	}
	c.WaitFor("the sandboxes to be deleted", func(context.Context) error {
		if out := c.OC("get", "namespaces", "-o", "name"); strings.Contains(out, "namespace/bundle-") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if out := c.OC("get", "rolebindings", "-o", "name"); strings.Contains(out, "/bundle-") {
		t.Errorf("the bundle's service account keeps its rights: %s", out)
	}
}

func TestPlaybookBundleRequiresRightsOfUser(t *testing.T) {
	c := kit.Shared(t)
	pushBundle(t, c, "rights-apb", refusedSpec)
	relist(c, "rights-apb")
	c.Apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: orders}, rules: [{apiGroups: [servicecatalog.k8s.io], resources: [serviceinstances], verbs: [create, get, patch, delete]}]}`)
	c.OC("policy", "add-role-to-user", "orders", "mallory", "--role-namespace="+c.Namespace)
	manifest := `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: rights}, spec: {clusterServiceClassExternalName: rights-apb, parameters: {count: 1}}}`
	if out, err := c.TryOCWithInput(manifest, "--as=mallory", "--as-group=system:authenticated", "create", "-f", "-"); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	c.WaitFor("the refusal", func(context.Context) error {
		if got := c.OC("get", "serviceinstance/rights", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, `user "mallory" needs the permissions of the role "edit"`) {
			return fmt.Errorf("the conditions are %s", got)
		}
		return nil
	})
	if out := c.OC("get", "namespaces", "-o", "name"); strings.Contains(out, "namespace/bundle-") {
		t.Error("the bundle runs")
	}
	c.OC("delete", "serviceinstance/rights")
}
