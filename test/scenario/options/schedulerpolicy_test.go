package options

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// waitStatus waits until the host's status contains the given text. If present is false, it waits
// until the status no longer contains the text.
func waitStatus(c *kit.Cluster, text string, present bool) {
	c.WaitFor(fmt.Sprintf("text %q in the status: %t", text, present), func(context.Context) error {
		if status := c.MustSlipway("status"); strings.Contains(status, text) != present {
			return fmt.Errorf("the status is\n%s", status)
		}
		return nil
	})
}

// placed creates a pod. It waits until the scheduler has placed the pod or has reported that no
// node is suitable, as want specifies.
func placed(c *kit.Cluster, name, want string) {
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, command: [sleep, infinity]}]
`, name, kit.ToolsImage))
	c.WaitFor("scheduling of "+name, func(context.Context) error {
		got, err := c.TryOC("get", "pod", name, "-o", `jsonpath={.status.conditions[?(@.type=="PodScheduled")].status} {.status.conditions[?(@.type=="PodScheduled")].message}`)
		if err == nil && !strings.Contains(got, want) {
			err = fmt.Errorf("the condition is %q, want %q", got, want)
		}
		return err
	})
}

// TestSchedulerFollowsPolicyOfConfigMap creates, breaks and removes the ConfigMap that the
// policy-configmap argument specifies, while the cluster runs.
func TestSchedulerFollowsPolicyOfConfigMap(t *testing.T) {
	c := kit.Shared(t)
	const missing = "ConfigMap kube-system/scheduler-policy does not exist"
	waitStatus(c, missing, true)
	placed(c, "without-policy", "True")

	const policy = "kind: Policy\napiVersion: v1\npredicates:\n- {name: RequireRack, argument: {labelsPresence: {labels: [rack], presence: true}}}\npriorities: []\n"
	c.OC("create", "configmap", "scheduler-policy", "-n", "kube-system", "--from-literal=policy.cfg="+policy)
	waitStatus(c, missing, false)
	placed(c, "with-policy", "False 0/1 nodes are available: 1 node(s) lack")

	c.OC("patch", "configmap", "scheduler-policy", "-n", "kube-system", "-p", `{"data":{"policy.cfg":"kind: Policy\npredicates:\n- name: PodFitsResource\n"}}`)
	const broken = "ConfigMap kube-system/scheduler-policy is rejected, and the previous rules remain in effect"
	waitStatus(c, broken, true)
	waitStatus(c, "ConfigMap kube-system/scheduler-policy:3: predicates[0].name", true)
	placed(c, "after-mistake", "False 0/1 nodes are available: 1 node(s) lack")

	c.OC("delete", "configmap", "scheduler-policy", "-n", "kube-system")
	waitStatus(c, missing, true)
	placed(c, "after-mistake", "True")
	c.OC("delete", "pods", "--all", "--wait=false")
}
