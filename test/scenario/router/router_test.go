// Package router tests that routes forward requests from a node's ports to pods.
package router

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// site is an application with a service. Its pods serve a page with the given text.
const site = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: ` + kit.ToolsImage + `
        command: [sh, -c, "mkdir -p /tmp/www && echo -n '%[2]s' > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"]
        readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 3}}}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{name: web, port: 80, targetPort: 8080}]}
`

const route = `{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: %q, labels: {%s}}, spec: {host: %q, to: {kind: Service, name: %q}}}`

// fetch requests a host's page from the router on one of the machine's ports. On port 443, it uses
// TLS.
func fetch(c *kit.Cluster, port int, host string) (status int, body string) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.Dial(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		},
	}}
	scheme := "http"
	if port == 443 {
		scheme = "https"
	}
	response, err := client.Get(scheme + "://" + host + "/")
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// loaders is the number of concurrent requests that load sends.
const loaders = 3

// load repeatedly requests a page until stop is called. stop returns the failures.
func load(c *kit.Cluster, host string) (stop func() []string) {
	return repeat(func() string {
		if status, body := fetch(c, 80, host); status != http.StatusOK {
			return fmt.Sprint(status, " ", body)
		}
		return ""
	})
}

// repeat calls do repeatedly in several concurrent loops until stop is called. stop returns the
// failures.
func repeat(do func() (failure string)) (stop func() []string) {
	var end atomic.Bool
	var group sync.WaitGroup
	var mu sync.Mutex
	var failures []string
	for range loaders {
		group.Go(func() {
			for !end.Load() {
				if failure := do(); failure != "" {
					mu.Lock()
					failures = append(failures, failure)
					mu.Unlock()
				}
			}
		})
	}
	return func() []string {
		end.Store(true)
		group.Wait()
		return failures
	}
}

func serves(t *testing.T, c *kit.Cluster, port int, host, want string) {
	t.Helper()
	eventually.Equal(t, "response of "+host, func() string { _, body := fetch(c, port, host); return body }, want)
}

// decision returns all routers' decisions in a route's status, such as "public:True
// other:False/HostAlreadyClaimed".
func decision(c *kit.Cluster, name string) string {
	out, err := c.TryOC("get", "route", name, "-o", "json")
	var route routev1.Route
	if err != nil || json.Unmarshal([]byte(out), &route) != nil {
		return ""
	}
	var lines []string
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			text := ingress.RouterName + ":" + string(condition.Status)
			if condition.Reason != "" {
				text += "/" + condition.Reason
			}
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, " ")
}

func TestRollingUpdateLosesNoRequest(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "web", "one"))
	c.OC("expose", "service/web", "--name=front", "-l", "app=web")
	host := "front-" + c.Namespace + ".apps.localhost"
	serves(t, c, 80, host, "one")
	eventually.Equal(t, "status of the route", func() string { return decision(c, "front") }, "public:True")
	if output := c.OC("get", "route", "front"); !strings.Contains(output, host) {
		t.Errorf("the route is shown as\n%s", output)
	}

	stop := load(c, host)
	c.Apply(fmt.Sprintf(site, "web", "two"))
	c.OC("rollout", "status", "deployment/web", "--timeout=120s")
	serves(t, c, 80, host, "two")
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed during the update, the first with: %s", len(failures), failures[0])
	}
}

func TestOldestRouteKeepsHost(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(route, "older", "", "claimed.example.com", "nothing"))
	eventually.Equal(t, "status of the first route", func() string { return decision(c, "older") }, "public:True")
	result, err := time.Parse(time.RFC3339, c.OC("get", "route", "older", "-o", "jsonpath={.metadata.creationTimestamp}"))
	if err != nil {
		t.Fatal(err)
	}
	// Wait, because creation times have a resolution of one second.
	eventually.Equal(t, "difference of one second between the routes", func() bool { return time.Since(result) > time.Second }, true)
	c.OC("create", "namespace", c.Namespace+"-other")
	other := c.In(c.Namespace + "-other")
	// Also delete the route's claim to the host. Otherwise, the claim would take precedence over
	// newer claims in the next run.
	t.Cleanup(func() { c.OC("delete", "namespace", c.Namespace+"-other") })
	other.Apply(fmt.Sprintf(route, "younger", "", "claimed.example.com", "nothing"))
	eventually.Equal(t, "status of the second route", func() string { return decision(other, "younger") }, "public:False/HostAlreadyClaimed")
	c.OC("delete", "route", "older")
	eventually.Equal(t, "status when the host is free", func() string { return decision(other, "younger") }, "public:True")
}

func TestRoutesAreServedWhileNodeProcessIsKilled(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(fmt.Sprintf(site, "kept", "kept"))
	c.Apply(fmt.Sprintf(route, "kept", "", "kept.example.com", "kept"))
	serves(t, c, 80, "kept.example.com", "kept")
	stop := load(c, "kept.example.com")
	c.Kill("node")
	c.Apply(fmt.Sprintf(route, "later", "", "later.example.com", "kept"))
	serves(t, c, 80, "later.example.com", "kept")
	if failures := stop(); len(failures) > 0 {
		t.Errorf("%d requests failed, the first with: %s", len(failures), failures[0])
	}
}
