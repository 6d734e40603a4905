package application

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// measured is an application with metrics. Prometheus finds its service by annotations.
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

// TestPrometheusCollectsMetricsOfCluster creates the objects of the template, and queries the
// metrics of each kind of target and of all alert rules.
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
	rules := c.Exec(pod, "cat", "/etc/prometheus/cluster.rules.yml")
	for _, metric := range metricsOf(rules) {
		c.WaitFor("metric "+metric, func(context.Context) error {
			if len(query("count("+metric+")")) == 0 {
				return fmt.Errorf("no target has the metric")
			}
			return nil
		})
	}
}

// metricsOf returns the metrics in the expressions of alert rules with their jobs, without those
// that exist only after the call of a FlexVolume driver.
func metricsOf(rules string) (names []string) {
	for _, expression := range regexp.MustCompile(`(?m)expr: (.*)$`).FindAllStringSubmatch(rules, -1) {
		for _, metric := range regexp.MustCompile(`\b((?:apiserver|haproxy|kubelet|node|scheduler)_\w+\{job="\w+")`).FindAllString(expression[1], -1) {
			names = append(names, metric+"}")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
