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

const bundleSpec = `version: 1.0
name: hello-apb
description: Says hello
bindable: true
async: optional
metadata: {displayName: Hello}
plans:
- name: default
  description: The plan
  free: true
  parameters:
  - {name: greeting, type: enum, enum: [hello, goodbye], default: hello, required: true, updatable: true}
  - {name: count, type: int, required: true}
`

// bundleScript does what playbooks do, with oc as the client.
const bundleScript = `set -e
action=$1 vars=$3
value() { echo "$vars" | busybox sed -E "s/.*\"$1\":\"([^\"]*)\".*/\1/"; }
project=$(value namespace)
fields() { oc create secret generic "$POD_NAME" -n "$POD_NAMESPACE" --from-literal=fields="$1"; }
oc annotate pod "$POD_NAME" -n "$POD_NAMESPACE" apb_last_operation="running $action"
case $action in
provision) oc create configmap hello -n "$project" --from-literal=vars="$vars"; fields '{"host": "hello", "port": 80}' ;;
update) oc patch configmap hello -n "$project" --type=merge -p "{\"data\": {\"greeting\": \"$(value greeting)\"}}" ;;
bind) fields "{\"host\": \"hello\", \"user\": \"bound\"}" ;;
unbind) exit 8 ;;
deprovision) oc delete configmap hello -n "$project" ;;
esac
`

// relist fetches the catalog of the broker and waits until it contains a class.
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
			return fmt.Errorf("there is none")
		}
		return nil
	})
}

// explain logs, if a test has failed, what the broker and its sandboxes say.
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

func TestPlaybookBundleIsOrderedBoundAndReturned(t *testing.T) {
	c := kit.Shared(t)
	explain(t, c)
	pushBundle(t, c, "hello-apb", bundleSpec, bundleScript)
	c.OC("policy", "add-role-to-user", "edit", "alice")
	relist(c, "hello-apb")
	apply := func(user, manifest string) {
		t.Helper()
		if out, err := c.TryOCWithInput(manifest, "--as="+user, "--as-group=system:authenticated", "apply", "-f", "-"); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	apply("alice", `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: wrong}, spec: {
		clusterServiceClassExternalName: hello-apb, parameters: {count: many}}}`)
	c.WaitFor("the refusal of a parameter", func(context.Context) error {
		if got := c.OC("get", "serviceinstance/wrong", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, "parameters.count: the value must be of type integer") {
			return fmt.Errorf("the conditions are %s", got)
		}
		return nil
	})
	c.OC("delete", "serviceinstance/wrong")

	apply("alice", `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: hello}, spec: {
		clusterServiceClassExternalName: hello-apb, parameters: {count: 2}}}`)
	wait(c, "serviceinstance/hello", "{.status.asyncOpInProgress} {.status.lastConditionState}", "false Ready")
	vars := c.OC("get", "configmap/hello", "-o", "jsonpath={.data.vars}")
	for _, want := range []string{
		`"count":2`, `"greeting":"hello"`, `"_apb_plan_id":"default"`, `"_apb_last_requesting_user":"alice"`, `"namespace":"` + c.Namespace + `"`,
		`"_apb_service_instance_id":"` + c.OC("get", "serviceinstance/hello", "-o", "jsonpath={.spec.externalID}") + `"`,
	} {
		if !strings.Contains(vars, want) {
			t.Errorf("the variables lack %s: %s", want, vars)
		}
	}

	apply("alice", `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: hello-binding}, spec: {instanceRef: {name: hello}}}`)
	wait(c, "servicebinding/hello-binding", "{.status.lastConditionState}", "Ready")
	if got := c.OC("extract", "secret/hello-binding", "--to=-", "--keys=user"); !strings.Contains(got, "bound") {
		t.Errorf("the credentials are %s", got)
	}
	c.OC("patch", "serviceinstance/hello", "--type=merge", "-p", `{"spec": {"parameters": {"count": 2, "greeting": "goodbye"}}}`)
	wait(c, "configmap/hello", "{.data.greeting}", "goodbye")
	wait(c, "serviceinstance/hello", "{.status.asyncOpInProgress} {.status.lastConditionState}", "false Ready")
	c.OC("delete", "servicebinding/hello-binding")
	c.OC("delete", "serviceinstance/hello")
	gone(c, "configmap/hello")
	c.WaitFor("the sandboxes to be deleted", func(context.Context) error {
		if out := c.OC("get", "namespaces", "-o", "name"); strings.Contains(out, "namespace/bundle-") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if out := c.OC("get", "rolebindings", "-o", "name"); strings.Contains(out, "/bundle-") {
		t.Errorf("a bundle keeps its rights: %s", out)
	}
}

func TestPlaybookBundleNeedsTheRightsOfTheUser(t *testing.T) {
	c := kit.Shared(t)
	pushBundle(t, c, "rights-apb", strings.ReplaceAll(bundleSpec, "hello-apb", "rights-apb"), bundleScript)
	relist(c, "rights-apb")
	c.Apply(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: orders}, rules: [{apiGroups: [servicecatalog.k8s.io], resources: [serviceinstances], verbs: [create, get, patch, delete]}]}`)
	c.OC("policy", "add-role-to-user", "orders", "mallory", "--role-namespace="+c.Namespace)
	manifest := `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: rights}, spec: {clusterServiceClassExternalName: rights-apb, parameters: {count: 1}}}`
	if out, err := c.TryOCWithInput(manifest, "--as=mallory", "--as-group=system:authenticated", "create", "-f", "-"); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	c.WaitFor("the refusal", func(context.Context) error {
		if got := c.OC("get", "serviceinstance/rights", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, `user "mallory" needs the role "edit"`) {
			return fmt.Errorf("the conditions are %s", got)
		}
		return nil
	})
	if out := c.OC("get", "configmaps", "-o", "name"); strings.Contains(out, "configmap/hello") {
		t.Error("the bundle ran")
	}
	c.OC("delete", "serviceinstance/rights")
}
