package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// classes contains priority classes. The first class uses the guide's API version.
const classes = `
apiVersion: scheduling.k8s.io/v1beta1
kind: PriorityClass
metadata: {name: scenario-high}
value: 1000
description: for the pods that evict others
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: scenario-low}
value: 5
globalDefault: true
`

func TestPriorityClassSetsPriority(t *testing.T) {
	c := kit.Shared(t)
	makePod(t, c, pod("before", sleeper()))
	c.Apply(classes)
	t.Cleanup(func() { c.OC("delete", "priorityclass", "scenario-high", "scenario-low") })
	c.WaitFor("the default class", func(context.Context) error {
		return create(t, c, pod("default", sleeper()))
	})
	makePod(t, c, pod("named", sleeper(), "priorityClassName: scenario-high"))
	c.Apply(replicas("managed", sleeper(), "priorityClassName: scenario-high"))
	for name, want := range map[string]int32{"before": 0, "default": 5, "named": 1000, c.OnlyPod("set=managed").Name: 1000} {
		if got := c.Pod(name).Spec.Priority; got == nil || *got != want {
			t.Errorf("priority of pod %s: %v, want %d", name, got, want)
		}
	}
	expectRejected(t, c, pod("unknown", sleeper(), "priorityClassName: nothing"), "no PriorityClass with name nothing was found")
	expectRejected(t, c, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: too-high}, value: 1000000001}", "1000000000")
	for name, want := range map[string]string{"system-node-critical": "2000001000", "system-cluster-critical": "2000000000"} {
		if got := c.OC("get", "priorityclass", name, "-o", "jsonpath={.value}"); got != want {
			t.Errorf("value of %s: %s, want %s", name, got, want)
		}
	}
	critical := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: critical}, spec: {%s, priorityClassName: system-node-critical}}`, sleeper())
	expectRejected(t, c, critical, "system-node-critical is for namespaces of the platform")
	c.Apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: critical}, spec: {hard: {pods: 1}, scopeSelector: {matchExpressions: [" +
		"{scopeName: PriorityClass, operator: In, values: [system-node-critical]}]}}}")
	c.WaitFor("the quota that allows the class", func(context.Context) error { return create(t, c, critical) })
}

func TestCriticalPodAnnotationBecomesPriorityClass(t *testing.T) {
	c := kit.Shared(t)
	manifest := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: annotated, annotations: {scheduler.alpha.kubernetes.io/critical-pod: "true"}}, spec: {%s}}`, sleeper())
	for namespace, want := range map[string]string{"kube-system": "system-cluster-critical 2000000000", c.Namespace: ""} {
		out, err := c.TryOCWithInput(manifest, "create", "--dry-run=server", "-n", namespace, "-f", "-", "-o", "jsonpath={.spec.priorityClassName} {.spec.priority}")
		if err != nil || want != "" && out != want || want == "" && strings.Contains(out, "critical") {
			t.Errorf("priority in %s: %q %v, want %q", namespace, out, err, want)
		}
	}
}

// TestPreemptionPrefersVictimsWithoutBudget also checks that a pod does not preempt other pods that
// its affinity requires.
func TestPreemptionPrefersVictimsWithoutBudget(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(classes)
	t.Cleanup(func() { c.OC("delete", "priorityclass", "scenario-high", "scenario-low") })
	const nodeSelector, low, high = "nodeSelector: {kubernetes.io/hostname: contested}", "priorityClassName: scenario-low", "priorityClassName: scenario-high"
	half := sleeper("resources: {requests: {cpu: 2}}")
	c.Apply(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: guarded}, spec: {minAvailable: 1, selector: {matchLabels: {app: guarded}}}}`)
	c.OC("wait", "pdb", "guarded", "--for", "jsonpath={.status.observedGeneration}=1", "--timeout", "1m")
	addNode(t, c, "contested", nil)
	makePod(t, c, pod("guarded", half, nodeSelector, low))
	wantPlace(t, c, "guarded", "contested")
	makePod(t, c, pod("cache", half, nodeSelector, low))
	wantPlace(t, c, "cache", "contested")

	affinity := "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + near("cache, guarded", corev1.LabelHostname) + "]}}"
	makePod(t, c, pod("near", sleeper("resources: {requests: {cpu: 4}}"), nodeSelector, high, affinity))
	wantPlace(t, c, "near", "")
	for _, name := range []string{"guarded", "cache"} {
		if c.Pod(name).DeletionTimestamp != nil {
			t.Errorf("pod %s was evicted for a pod whose affinity requires it", name)
		}
	}
	makePod(t, c, pod("urgent", half, nodeSelector, high))
	waitLeaving(c, "cache")
	if c.Pod("guarded").DeletionTimestamp != nil {
		t.Error("a pod with a disruption budget was evicted, although another victim exists")
	}
}

func TestPodsOfHigherPriorityPreemptOthers(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(classes)
	t.Cleanup(func() { c.OC("delete", "priorityclass", "scenario-high", "scenario-low") })
	addNode(t, c, "crowded", nil)
	const nodeSelector = "nodeSelector: {kubernetes.io/hostname: crowded}"
	cpu := func(amount string) string { return sleeper("resources: {requests: {cpu: " + amount + "}}") }
	makePod(t, c, pod("small", cpu("500m"), nodeSelector, "priorityClassName: scenario-low"))
	makePod(t, c, pod("large", cpu("3"), nodeSelector, "priorityClassName: scenario-low"))
	c.Apply(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: large}, spec: {minAvailable: 1, selector: {matchLabels: {app: large}}}}`)
	for _, name := range []string{"small", "large"} {
		wantPlace(t, c, name, "crowded")
	}
	makePod(t, c, pod("peer", cpu("2"), nodeSelector, "priorityClassName: scenario-low"))
	wantPlace(t, c, "peer", "")
	makePod(t, c, pod("impossible", cpu("5"), nodeSelector, "priorityClassName: scenario-high"))
	wantPlace(t, c, "impossible", "")
	for _, name := range []string{"small", "large"} {
		if c.Pod(name).DeletionTimestamp != nil {
			t.Fatalf("pod %s was evicted for a pod whose priority is not higher, or that does not fit anyway", name)
		}
	}

	makePod(t, c, pod("urgent", cpu("2"), nodeSelector, "priorityClassName: scenario-high"))
	// The scheduler must evict the victim despite its disruption budget, because it can evict no
	// other pod.
	waitLeaving(c, "large")
	c.WaitFor("nomination", func(context.Context) error {
		if got := c.Pod("urgent").Status.NominatedNodeName; got != "crowded" {
			return fmt.Errorf("node %q", got)
		}
		return nil
	})
	// The node has no machine that stops the victim, so the pod waits until the victim's grace
	// period ends.
	if urgent := c.Pod("urgent"); urgent.Spec.NodeName != "" || c.Pod("large").DeletionGracePeriodSeconds == nil {
		t.Errorf("urgent is on node %q before the victim has ended", urgent.Spec.NodeName)
	}
	if c.Pod("small").DeletionTimestamp != nil {
		t.Error("a pod was evicted that did not need to be evicted")
	}
	now := int64(0)
	if err := c.Client.CoreV1().Pods(c.Namespace).Delete(t.Context(), "large", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	waitPlace(c, "urgent", "crowded")
	if peer := c.Pod("peer"); peer.Spec.NodeName != "" || peer.Status.Phase != corev1.PodPending {
		t.Errorf("peer is on node %q", peer.Spec.NodeName)
	}
}
