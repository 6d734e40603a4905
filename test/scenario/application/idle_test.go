package application

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// page returns the pod template for a pod that serves a page on port 8080.
func page(name string) string {
	return fmt.Sprintf(`template: {metadata: {labels: {app: %s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: %q,
		command: [sh, -c, "mkdir -p /tmp/www && echo awake > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"], ports: [{containerPort: 8080}],
		readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}}]}}`, name, kit.ToolsImage)
}

func TestFirstConnectionUnidlesService(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: lazy}, spec: {replicas: 2, selector: {app: lazy}, ` + page("lazy") + `}}
---
{apiVersion: v1, kind: Service, metadata: {name: lazy, labels: {part: shop}}, spec: {selector: {app: lazy}, ports: [{name: http, port: 80, targetPort: 8080}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: again}, spec: {type: NodePort, selector: {app: lazy}, ports: [{port: 81, targetPort: 8080}]}}
---
{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: lazy}, spec: {host: lazy.example.com, to: {name: lazy}}}
---
` + fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: client}, spec: {containers: [{name: main, image: %q, command: [sleep, "100000"]}]}}`, kit.ToolsImage))
	c.WaitFetch("client", "http://lazy/", "awake")
	waitOutput(c, "dc/lazy", "{.status.availableReplicas} {.status.conditions[?(@.type==\"Progressing\")].reason}", "2 NewReplicationControllerAvailable")

	if output := c.OC("idle", "-l", "part=shop", "--dry-run"); !strings.Contains(output, `DeploymentConfig "`+c.Namespace+`/lazy" to 2 replicas once it receives traffic (dry run)`) {
		t.Errorf("a dry run printed\n%s", output)
	}
	idle := func() {
		t.Helper()
		output := c.OC("idle", "lazy", "again")
		if want := fmt.Sprintf("The service %q has been marked as idled", c.Namespace+"/lazy"); !strings.Contains(output, want) {
			t.Errorf("idle printed\n%s", output)
		}
		waitOutput(c, "dc/lazy", `{.spec.replicas} {.status.replicas} {.metadata.annotations.idling\.alpha\.openshift\.io/previous-scale}`, "0 0 2")
		waitOutput(c, "endpoints/lazy", `{.metadata.annotations.idling\.alpha\.openshift\.io/unidle-targets}`,
			`[{"kind":"DeploymentConfig","name":"lazy","group":"apps.openshift.io","replicas":2}]`)
	}
	awake := func() {
		t.Helper()
		waitOutput(c, "dc/lazy", `{.spec.replicas} {.metadata.annotations.idling\.alpha\.openshift\.io/idled-at}`, "2 ")
		for _, object := range []string{"svc/lazy", "svc/again", "endpoints/lazy"} {
			waitOutput(c, object, `{.metadata.annotations.idling\.alpha\.openshift\.io/idled-at}`, "")
		}
	}

	// Several simultaneous connections must all wait for the pods, and none may be rejected.
	idle()
	var fetches sync.WaitGroup
	nodePort := fmt.Sprintf("http://%s:%s/", c.Address, c.OC("get", "svc/again", "-o", "jsonpath={.spec.ports[0].nodePort}"))
	for i, url := range []string{"http://lazy/", "http://again:81/", "http://lazy/", nodePort} {
		fetches.Go(func() {
			if got, err := c.TryOC("exec", "client", "--", "timeout", "100", "wget", "-q", "-O", "-", url); err != nil || !strings.Contains(got, "awake") {
				t.Errorf("request %d to an idle service: %q, %v", i, got, err)
			}
		})
	}
	fetches.Wait()
	awake()

	// Wake the service through the router, which has an address for the service but no pods.
	idle()
	c.WaitVisit("http://lazy.example.com/", "awake")
	awake()

	// The service must stay idled when the node process is killed.
	idle()
	c.Kill("node")
	c.WaitFetch("client", "http://lazy/", "awake")
	awake()
}
