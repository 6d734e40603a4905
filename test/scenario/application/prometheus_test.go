package application

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// measured is an application with metrics. Prometheus discovers the application's service by the
// service's annotations.
const measured = `
apiVersion: v1
kind: Service
metadata: {name: shop, annotations: {prometheus.io/scrape: "true", prometheus.io/path: /shop, prometheus.io/port: "8080"}}
spec: {ports: [{port: 8080}], selector: {app: shop}}
---
apiVersion: v1
kind: Pod
metadata: {name: shop, labels: {app: shop}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: shop
    image: %s
    command: [sh, -c, "echo shop_orders_total 7 >/tmp/shop && exec httpd -f -p 8080 -h /tmp"]
`

// TestPrometheusCollectsMetricsOfCluster creates the template's objects. It then checks that
// Prometheus has metrics for each kind of target, for each alerting rule, and for each of the
// dashboard's queries.
func TestPrometheusCollectsMetricsOfCluster(t *testing.T) {
	c := kit.Shared(t)
	c.BuildSample("prometheus", "")
	c.Apply(fmt.Sprintf(measured, kit.ToolsImage))
	t.Cleanup(func() { c.OC("delete", "clusterrole,clusterrolebinding", "prometheus-scraper") })
	c.OC("new-app", "prometheus-persistent", "-p", "NAMESPACE="+c.Namespace, "-p", "VOLUME_CAPACITY=1Gi")
	c.OC("rollout", "status", "dc/prometheus")
	pod := c.OnlyPod("name=prometheus").Name
	query := func(expression string) (lines []string) {
		output := c.Exec(pod, "promtool", "query", "instant", "http://127.0.0.1:9090", expression)
		return slices.DeleteFunc(strings.Split(output, "\n"), func(line string) bool { return !strings.Contains(line, " => ") })
	}
	for _, job := range []string{"masters", "nodes", "containers", "routers", "services"} {
		c.WaitFor("metrics of "+job, func(context.Context) error {
			if up := query(fmt.Sprintf("up{job=%q}", job)); len(up) == 0 || slices.ContainsFunc(up, func(line string) bool { return !strings.Contains(line, "=> 1 ") }) {
				return fmt.Errorf("targets: %q", up)
			}
			return nil
		})
	}
	if got := query(`shop_orders_total{service="shop",pod="shop"}`); len(got) != 1 || !strings.Contains(got[0], "=> 7 ") {
		t.Errorf("the application has the metrics %q", got)
	}
	c.Exec(pod, "promtool", "check", "rules", "/etc/prometheus/cluster.rules.yml")
	if got := c.Slipway("metrics", "rules").Stdout; strings.TrimSpace(got) != strings.TrimSpace(c.Exec(pod, "cat", "/etc/prometheus/cluster.rules.yml")) {
		t.Errorf("slipway metrics rules prints\n%s", got)
	}
	for _, expression := range expressionsOf(t, c.Slipway("metrics", "dashboard").Stdout) {
		c.WaitFor("a panel of the dashboard", func(context.Context) error {
			if len(query(expression)) == 0 {
				return fmt.Errorf("no result of %s", expression)
			}
			return nil
		})
	}
	for _, metric := range metricsOf(c.Slipway("metrics", "rules").Stdout) {
		c.WaitFor("metric "+metric, func(context.Context) error {
			if len(query("count("+metric+")")) == 0 {
				return fmt.Errorf("no target has the metric")
			}
			return nil
		})
	}
}

// expressionsOf returns a dashboard's queries, except those about FlexVolume driver calls, because
// a new cluster has no such calls.
func expressionsOf(t *testing.T, dashboard string) (expressions []string) {
	t.Helper()
	var content struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(dashboard), &content); err != nil {
		t.Fatal(err)
	}
	for _, panel := range content.Panels {
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, "slipway_flexvolume_operation") {
				expressions = append(expressions, target.Expr)
			}
		}
	}
	return expressions
}

// metricsOf returns the metrics in the expressions of alerting rules, with their jobs. It omits the
// metrics that exist only after a FlexVolume driver call.
func metricsOf(rules string) (names []string) {
	for _, expression := range regexp.MustCompile(`(?m)expr: (.*)$`).FindAllStringSubmatch(rules, -1) {
		for _, metric := range regexp.MustCompile(`\b((?:apiserver|haproxy|kubelet|node|scheduler)_\w+\{job="\w+")`).FindAllString(expression[1], -1) {
			names = append(names, metric+"}")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
