package deployment

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestAutoscalerFollowsLoad runs a pod that uses CPU time, waits until the autoscaler has added a
// second pod, and then stops the load.
func TestAutoscalerFollowsLoad(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: busy}, spec: {replicas: 1, selector: {app: busy}, template: {
		metadata: {labels: {app: busy}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "` + kit.ToolsImage + `",
			command: [sh, -c, "while [ ! -e /tmp/idle ]; do :; done; sleep 100000"],
			resources: {requests: {cpu: 20m}, limits: {cpu: 200m}}}]}}}}`)
	c.Apply(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: busy}, spec: {
		scaleTargetRef: {apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, name: busy}, minReplicas: 1, maxReplicas: 2,
		metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}],
		behavior: {scaleDown: {stabilizationWindowSeconds: 0}}}}`)
	waitReplicas(c, "busy-1", 2)
	usage := strings.Fields(c.OC("adm", "top", "pods", "-l", "app=busy", "--no-headers"))
	if len(usage) < 3 || !strings.HasPrefix(usage[0], "busy-1-") || !strings.HasSuffix(usage[1], "m") || usage[1] == "0m" {
		t.Errorf("top of pods prints %v", usage)
	}
	if header, _, _ := strings.Cut(c.OC("adm", "top", "nodes"), "\n"); strings.Join(strings.Fields(header), " ") != "NAME CPU(cores) CPU% MEMORY(bytes) MEMORY%" {
		t.Errorf("top of nodes prints %q", header)
	}
	if got, err := c.TryOC("adm", "top", "node", "--selector=no-such-label"); err == nil {
		t.Errorf("top of nodes with an unused label prints %q", got)
	}
	viewer := c.User("viewer-of-usage")
	c.OC("policy", "add-role-to-user", "view", "viewer-of-usage")
	for path, want := range map[string]bool{
		"/apis/metrics.k8s.io/v1beta1/namespaces/" + c.Namespace + "/pods": true,
		"/apis/metrics.k8s.io/v1beta1/namespaces/default/pods":             false,
		"/apis/metrics.k8s.io/v1beta1/nodes":                               false,
	} {
		c.WaitFor(fmt.Sprintf("right of a viewer to %s to be %v", path, want), func(ctx context.Context) error {
			err := viewer.Rest.Get().AbsPath(path).Do(ctx).Error()
			if (err == nil) != want {
				return fmt.Errorf("it gets %v", err)
			}
			return nil
		})
	}
	for _, pod := range strings.Fields(c.OC("get", "pods", "-l", "app=busy", "-o", "name")) {
		c.OC("exec", pod, "--", "touch", "/tmp/idle")
	}
	waitReplicas(c, "busy-1", 1)
}
